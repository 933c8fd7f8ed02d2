#pragma once

#include <cstddef>
#include <span>

#include "lib/base/tensor_spec.h"
#include "lib/exec/move.h"
#include "lib/index/region.h"

namespace shardtool::exec {

/// Fills `bytes`, whose size must match, from a file, past the page cache if that is better. Throws
/// the errors of reading.
void read_from(const SourceFile& file, std::span<std::byte> bytes, i64 offset);

/// Reads a region of a tensor into memory of its local shape, row-major, from the first holders
/// that have its elements; padding is left as it is. Throws kCoverage if an element has no holder,
/// kSubByteCut if a row does not begin and end at whole bytes, and the errors of reading.
void read_region(const TensorSpec& spec, const MoveSide& side, const index::Region& region,
                 std::span<const SourceFile> files, std::span<std::byte> bytes);

/// Reads a box of a tensor, row-major, from the first holders that have its elements. Requires
/// and throws as read_region.
void read_box(const TensorSpec& spec, const MoveSide& side, std::span<const i64> begin,
              std::span<const i64> sizes, std::span<const SourceFile> files,
              std::span<std::byte> bytes);

}  // namespace shardtool::exec
