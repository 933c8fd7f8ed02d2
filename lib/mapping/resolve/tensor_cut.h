#pragma once

#include <string>
#include <vector>

#include "lib/base/shape.h"
#include "lib/layout/layout.h"
#include "lib/mapping/document/document.h"
#include "lib/mapping/resolve/axis_table.h"

namespace shardtool::mapping {

/// The result of a rule for one shape: an expression per axis, and the cuts in it.
struct TensorCut {
  std::vector<layout::LayoutAxis> axes;
  std::vector<UnitCut> units;  ///< of axes that are cut
  std::string strategy;        ///< the strategy's name, or "dims"
};

/// Cuts by the dims of a rule, one per axis of the tensor. Throws kShapeMismatch (number of dims,
/// extents), kUnknownName, and what AxisTable throws.
TensorCut cut_by_dims(const Rule& rule, const Shape& shape, AxisTable& axes);

/// Cuts by the named strategy of a rule of a document. `over` defaults to the mesh axis tp (ep for
/// expert_parallel); in a user's document also to the only axis of the mesh. Throws kUnknownName if
/// that does not exist, and what ShardingStrategy::apply throws, with the rule's place.
TensorCut cut_by_strategy(const Rule& rule, const Document& document, const Shape& shape,
                          AxisTable& axes);

}  // namespace shardtool::mapping
