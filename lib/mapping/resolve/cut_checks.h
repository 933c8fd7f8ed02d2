#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/layout/layout.h"
#include "lib/mapping/resolve/axis_table.h"
#include "lib/mapping/resolve/resolution.h"

namespace shardtool::mapping {

/// Returns the number of units of each part, padding included.
std::vector<i64> part_sizes(const UnitCut& cut, const mesh::Mesh& mesh);

/// Returns the largest number of parts none of which is empty: the units that a cut distributes, or
/// the parts that have owned units.
i64 most_parts(const layout::AxisExpr& expr);

/// Returns the layout. Throws kSubByteCut if a contiguous run on some device does not begin and end
/// at a byte, and unless empty shards are allowed, kEmptyShard if a device would hold an empty
/// region of the tensor, or a part of an index axis would have no index.
std::shared_ptr<const layout::Layout> checked(layout::Layout layout, Dtype dtype,
                                              bool allow_empty_shards);

/// Returns kNotDivisible for a cut with unequal parts, with numbers of parts that would divide, and
/// unless it `must_be_even`, with the policy that allows it.
Error uneven_cut_error(const UnitCut& cut, const std::vector<i64>& sizes, bool must_be_even);

/// Formats as "334+333+333"; of many parts the first ones and "+...".
std::string sum_text(const std::vector<i64>& sizes);
/// Returns the units of a cut, and how many of them it keeps together.
UnitRuns runs_of(const UnitCut& cut);
/// Names the numbers of devices next to `parts` for equal parts: "1000 divides over 2 or 4
/// devices", "176 in runs of 16 divides over 1 or 11 devices".
std::string even_counts(UnitRuns runs, i64 parts);

/// Returns the extent of an axis with the padding that its parts have.
i64 padded_size(const layout::AxisExpr& expr, const mesh::Mesh& mesh);

/// Lists changes beside cutting, in words: "pad axis 0 'vocab' from 50257 to 50304 with zeros",
/// "refine axis 0: blocks of 128 become 2 of 64, each with a copy".
std::vector<std::string> transforms_of(const layout::Layout& layout);

}  // namespace shardtool::mapping
