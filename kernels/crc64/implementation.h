#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardtool::kernels {

/// A message of `count` runs of `run` bytes with zeros between them. In memory run i begins at
/// first + i * src_stride; in the message at i * dst_stride.
///
/// R1 run > 0, count > 0, and dst_stride >= run unless count is 1
/// R2 skip = x^(8 * (dst_stride - run)) mod P: what a stretch of zeros multiplies by (1 for count
/// 1)
struct Rows {
  const std::byte* first = nullptr;
  std::int64_t run = 0;
  std::int64_t count = 1;
  std::int64_t src_stride = 0;
  std::uint64_t skip = 1;
};

/// One way to compute. All give the same results.
struct Implementation {
  const char* name;
  /// a * b mod P.
  std::uint64_t (*multiply)(std::uint64_t a, std::uint64_t b);
  /// The crc of the message.
  std::uint64_t (*rows)(const Rows& rows);
};

/// Those that this CPU can run, the fastest first; the portable one is the last and always there.
std::span<const Implementation> implementations();

extern const Implementation kPortable;
#if defined(__x86_64__)
extern const Implementation kPclmul;
extern const Implementation kAvx512;
#endif

}  // namespace shardtool::kernels
