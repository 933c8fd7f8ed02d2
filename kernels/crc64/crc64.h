#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/checked.h"

namespace shardtool::kernels {

/// A linear CRC-64: the remainder of the message polynomial times x^64, modulo the ECMA-182
/// polynomial, without initial and final inversion. Because it is linear over GF(2),
///   crc(a ++ b) = shift(crc(a), |b|) ^ crc(b)     and     crc(x ^ y) = crc(x) ^ crc(y),
/// so the digest of a tensor is the XOR over its parts of shift(crc(part), bytes after it):
/// every way to cut a tensor gives the same digest. Finds faults (2^-64), not attackers.
class Crc64 {
 public:
  /// Returns crc(message). Uses carry-less multiplication if the CPU has it, else tables.
  static std::uint64_t of(std::span<const std::byte> message);
  /// Returns the crc of `crc`'s message followed by these bytes.
  static std::uint64_t extend(std::uint64_t crc, std::span<const std::byte> message);
  /// Returns the crc of `crc`'s message followed by `bytes` zero bytes. O(log bytes).
  static std::uint64_t shift(std::uint64_t crc, i64 bytes);
  /// Returns x^(8 * bytes) mod P: shift(crc, bytes) = multiply(crc, power(bytes)). O(log bytes).
  static std::uint64_t power(i64 bytes);
  /// Returns the product of two remainders mod P.
  static std::uint64_t multiply(std::uint64_t a, std::uint64_t b);
};

}  // namespace shardtool::kernels
