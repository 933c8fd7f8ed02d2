#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "lib/index/strided_copy.h"

namespace shardtool::kernels {

/// Returns the contribution of `buffer` to the digest (Crc64) of an array of total_bytes. The copy
/// maps each byte of the buffer (src) to a byte of the array (dst):
///
///     XOR over every run r of shift(crc(r), total_bytes - end of r in dst)
///
/// Over the parts of any partition of a tensor, in any order, the contributions XOR to
/// Crc64::of(tensor). This proves that every byte was written once and at the right place.
/// Requires: the runs are within [0, total_bytes) and disjoint. The dst strides may have any order
/// and sign. One pass over the buffer, no allocation per run.
std::uint64_t placed_crc64(const index::StridedCopy& copy, const std::byte* buffer,
                           i64 total_bytes);

/// The same for bytes that are not contiguous in memory: crc_of_run(src) is the crc of the run
/// (copy.run bytes) that begins at src.
std::uint64_t placed_crc64(const index::StridedCopy& copy,
                           const std::function<std::uint64_t(i64 src)>& crc_of_run,
                           i64 total_bytes);

}  // namespace shardtool::kernels
