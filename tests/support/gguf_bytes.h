#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace shardtool::test {

/// Builds a GGUF file by the format's description, independently of the library.
class GgufBytes {
 public:
  explicit GgufBytes(std::uint32_t version = 3) : version_(version) {}

  GgufBytes& text(std::string_view key, std::string_view value) {
    return pair(key, 8, string(value));
  }
  GgufBytes& u32(std::string_view key, std::uint32_t value) { return pair(key, 4, raw(value)); }
  GgufBytes& u16(std::string_view key, std::uint16_t value) { return pair(key, 2, raw(value)); }
  GgufBytes& i32(std::string_view key, std::int32_t value) { return pair(key, 5, raw(value)); }
  /// A pair with the bytes of its value.
  GgufBytes& pair(std::string_view key, std::uint32_t type, std::string_view value) {
    pairs_ += string(key) + raw(type);
    pairs_ += value;
    ++n_pairs_;
    return *this;
  }
  /// Dims are innermost first, as in the file. The tensor's data follows the data before it.
  GgufBytes& tensor(std::string_view name, const std::vector<std::uint64_t>& dims,
                    std::uint32_t type, std::uint64_t bytes) {
    tensor_at(name, dims, type, data_);
    data_ = (data_ + bytes + alignment_ - 1) / alignment_ * alignment_;
    return *this;
  }
  GgufBytes& tensor_at(std::string_view name, const std::vector<std::uint64_t>& dims,
                       std::uint32_t type, std::uint64_t offset) {
    tensors_ += string(name) + raw(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t dim : dims) tensors_ += raw(dim);
    tensors_ += raw(type) + raw(offset);
    ++n_tensors_;
    return *this;
  }
  GgufBytes& align(std::uint64_t alignment) {
    alignment_ = alignment;
    return u32("general.alignment", static_cast<std::uint32_t>(alignment));
  }
  /// Bytes of data, in place of those of the tensors.
  GgufBytes& data(std::uint64_t bytes) {
    data_ = bytes;
    return *this;
  }
  GgufBytes& counts(std::uint64_t tensors, std::uint64_t pairs) {
    n_tensors_ = tensors;
    n_pairs_ = pairs;
    return *this;
  }

  std::string header() const {
    return "GGUF" + raw(version_) + raw(n_tensors_) + raw(n_pairs_) + pairs_ + tensors_;
  }
  std::string bytes() const {
    std::string all = header();
    all.resize((all.size() + alignment_ - 1) / alignment_ * alignment_ + data_, '\0');
    return all;
  }

  static std::string string(std::string_view text) {
    return raw(static_cast<std::uint64_t>(text.size())) + std::string(text);
  }
  template <class T>
  static std::string raw(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }

 private:
  std::uint32_t version_;
  std::string pairs_, tensors_;
  std::uint64_t n_pairs_ = 0, n_tensors_ = 0, data_ = 0, alignment_ = 32;
};

}  // namespace shardtool::test
