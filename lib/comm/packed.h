#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace shardtool::comm {

/// Packs texts into one message, each preceded by its length.
class Packer {
 public:
  Packer& add(std::string_view text) {
    packed_ += fmt::format("{} {}", text.size(), text);
    return *this;
  }
  std::string take() { return std::move(packed_); }

 private:
  std::string packed_;
};

/// Reads the texts of a Packer, in order. Throws std::logic_error where the message has none.
class Unpacker {
 public:
  explicit Unpacker(std::string_view packed) : left_(packed) {}
  bool is_at_end() const { return left_.empty(); }
  std::string next() {
    const size_t space = left_.find(' ');
    if (space == std::string_view::npos) throw std::out_of_range("a length is missing");
    const size_t size = std::stoul(std::string(left_.substr(0, space)));
    if (size > left_.size() - space - 1) throw std::out_of_range("a text is cut off");
    std::string text(left_.substr(space + 1, size));
    left_.remove_prefix(space + 1 + size);
    return text;
  }

 private:
  std::string_view left_;
};

}  // namespace shardtool::comm
