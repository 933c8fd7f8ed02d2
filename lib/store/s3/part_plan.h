#pragma once

#include <span>
#include <vector>

#include "lib/store/s3/parted_output.h"

namespace shardtool::store::s3 {

/// Most bytes of a part that the service copies: larger ones take it longer than one waits.
inline constexpr i64 kMostCopyBytes = 128 << 20;

/// Sizes of the parts of an object, of which the service can copy the ranges `copyable`, sorted and
/// disjoint, each from one place. As many bytes as possible are in parts inside of such a range;
/// the other parts have about `part_bytes`.
///
/// Only the last part may be smaller than 5 MiB, so that what lies between two ranges takes what it
/// lacks from their ends, and a range that would be too small then is not copied. Nor is a small
/// last part, which would save little.
std::vector<i64> plan_parts(i64 bytes, std::span<const ByteRange> copyable, i64 part_bytes);

}  // namespace shardtool::store::s3
