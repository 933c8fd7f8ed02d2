#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "lib/index/strided_copy.h"

namespace shardtool::kernels {

/// The contribution of `buffer` to the digest (Crc64) of an array of total_bytes, where the copy
/// says which byte of the array (dst) each byte of the buffer (src) is:
///
///     XOR over every run r of shift(crc(r), total_bytes - end of r in dst)
///
/// Over the parts of any partition of a tensor these XOR to Crc64::of(tensor), whatever the order
/// of the parts, so bytes that travel are proved to have landed once and at the right place.
/// Requires: the runs lie within [0, total_bytes) and are disjoint there. The dst strides may have
/// any order and sign. One pass over the buffer, no allocation per run.
std::uint64_t placed_crc64(const index::StridedCopy& copy, const std::byte* buffer,
                           i64 total_bytes);

/// The same for bytes that do not lie side by side in memory: crc_of_run(src) is the crc of the run
/// (copy.run bytes) that begins at src.
std::uint64_t placed_crc64(const index::StridedCopy& copy,
                           const std::function<std::uint64_t(i64 src)>& crc_of_run,
                           i64 total_bytes);

}  // namespace shardtool::kernels
