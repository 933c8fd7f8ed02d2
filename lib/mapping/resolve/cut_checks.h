#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/layout/layout.h"
#include "lib/mapping/resolve/axis_table.h"

namespace shardtool::mapping {

/// How many units each part gets, in the order of the parts. Padding counts.
std::vector<i64> part_sizes(const UnitCut& cut, const mesh::Mesh& mesh);

/// Throws kEmptyShard when a device would hold an empty region of the tensor, or a part of an index
/// axis would have no index.
void refuse_empty_shards(const layout::Layout& layout);

/// Throws kSubByteCut when a run of elements that some device holds does not begin and end on a
/// byte.
void refuse_sub_byte_cuts(const layout::Layout& layout, Dtype dtype);

/// The layout, which passed both. Throws what they throw; empty shards may be allowed.
std::shared_ptr<const layout::Layout> checked(layout::Layout layout, Dtype dtype,
                                              bool allow_empty_shards);

/// kNotDivisible for a cut whose parts differ, with the number of parts that would divide.
Error uneven_cut_error(const UnitCut& cut, const std::vector<i64>& sizes);

/// What a layout does to the tensor beside cutting it, for people: "pad axis 0 'vocab' from 50257
/// to 50304 with zeros", "refine axis 0: blocks of 128 become 2 of 64, each with a copy".
std::vector<std::string> transforms_of(const layout::Layout& layout);

}  // namespace shardtool::mapping
