#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardtool::kernels {

/// A message of `count` runs of `run` bytes with zeros between them. Run i begins at first + i *
/// src_stride in memory and at i * dst_stride in the message.
///
/// R1 run > 0, count > 0, and dst_stride >= run unless count is 1
/// R2 skip = x^(8 * (dst_stride - run)) mod P, the factor of a gap of zeros (1 for count 1)
struct Rows {
  const std::byte* first = nullptr;
  std::int64_t run = 0;
  std::int64_t count = 1;
  std::int64_t src_stride = 0;
  std::uint64_t skip = 1;
};

/// One implementation for an instruction set. All give the same results.
struct Implementation {
  const char* name;
  /// a * b mod P.
  std::uint64_t (*multiply)(std::uint64_t a, std::uint64_t b);
  /// The crc of the message.
  std::uint64_t (*rows)(const Rows& rows);
};

/// Implementations that this CPU can run, fastest first. The portable one is always last.
std::span<const Implementation> implementations();

extern const Implementation kPortable;
#if defined(__x86_64__) || defined(__aarch64__)
extern const Implementation kLanes;
#endif
#if defined(__x86_64__)
extern const Implementation kAvx512;
#endif

}  // namespace shardtool::kernels
