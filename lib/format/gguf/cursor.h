#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "lib/format/gguf/header.h"

namespace shardtool::format::gguf {

/// Reads little-endian values of a file front to back through a buffer.
class Cursor {
 public:
  explicit Cursor(const Input& input) : input_(input) {}

  i64 offset() const { return offset_; }
  i64 left() const { return input_.size - offset_; }

  template <class T>
  T value() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    read({reinterpret_cast<std::byte*>(&value), sizeof value});
    return value;
  }
  /// Reads a string: its length in 8 bytes, then its bytes. Keeps at most `kept` of them.
  std::string text(std::uint64_t longest, size_t kept);
  void skip(std::uint64_t bytes);

  /// Throws kMalformed: the file ends inside the header.
  [[noreturn]] void fail_at_end() const;
  /// Throws kMalformed with the place in the file.
  [[noreturn]] void fail(const std::string& message) const;

  bool is_at_end() const { return hit_end_; }

 private:
  void read(std::span<std::byte> into);
  void require(std::uint64_t bytes) const;

  const Input& input_;
  i64 offset_ = 0;
  std::vector<std::byte> buffer_;
  i64 buffer_begin_ = 0;
  mutable bool hit_end_ = false;
};

}  // namespace shardtool::format::gguf
