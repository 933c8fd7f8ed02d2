#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardtool::test {

/// Bytes of a safetensors file: the length of `json`, `json`, and `data`.
inline std::string safetensors_bytes(std::string_view json, std::string_view data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes += static_cast<char>(static_cast<std::uint64_t>(json.size()) >> (8 * i) & 0xff);
  }
  return bytes.append(json).append(data);
}

}  // namespace shardtool::test
