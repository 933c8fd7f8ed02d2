#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardtool::kernels {

/// The definition, bit by bit: message(x) * x^64 modulo x^64 + 0x42F0E1EBA9EA3693.
inline std::uint64_t reference_crc(std::span<const std::byte> message) {
  std::uint64_t remainder = 0;
  for (const std::byte byte : message) {
    for (int bit = 7; bit >= 0; --bit) {
      const std::uint64_t in = std::to_integer<std::uint64_t>(byte) >> bit & 1;
      const bool overflow = (remainder >> 63 ^ in) != 0;
      remainder = (remainder << 1) ^ (overflow ? 0x42F0E1EBA9EA3693 : 0);
    }
  }
  return remainder;
}

}  // namespace shardtool::kernels
