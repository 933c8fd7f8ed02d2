#pragma once

#include <string>
#include <vector>

#include "lib/base/shape.h"
#include "lib/layout/layout.h"
#include "lib/mapping/document/document.h"
#include "lib/mapping/resolve/axis_table.h"

namespace shardtool::mapping {

/// What a rule makes of one shape: an expression per axis, and what is dealt out in it.
struct TensorCut {
  std::vector<layout::LayoutAxis> axes;
  std::vector<UnitCut> units;  ///< of the axes that are cut
  std::string strategy;        ///< the strategy's name, or "dims"
};

/// One dim per axis of the tensor. Throws kShapeMismatch (the number of dims, the extents),
/// kUnknownName, and what AxisTable throws.
TensorCut cut_by_dims(const std::vector<Dim>& dims, const Shape& shape, AxisTable& axes);

/// A named strategy. `over` defaults to the mesh axis tp (ep for expert_parallel), in a document of
/// one's own also to the only axis of the mesh. Throws kUnknownName when there is no such default,
/// and what ShardingStrategy::apply throws, with the rule's place.
TensorCut cut_by_strategy(const StrategySpec& spec, const Rule& rule, bool in_preset,
                          const Shape& shape, AxisTable& axes);

}  // namespace shardtool::mapping
