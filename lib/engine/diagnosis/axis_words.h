#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/engine/side.h"

namespace shardtool::engine {

/// A stretch of an axis that has units of its own: the q of a fused q, k and v.
struct AxisSection {
  index::Interval indices;  ///< global
  std::string name;         ///< "gate", "q"; empty for an axis of one section
  std::string unit_name;    ///< "head", "kv head"; or as the indices
  i64 unit = 1;             ///< indices of one unit
};

/// What people call the indices of a stored axis.
///
/// W1 the sections cover the axis in order
struct AxisWords {
  std::string index = "row";  ///< "row", "column", "element", "matrix"
  std::vector<AxisSection> sections;

  const AxisSection& section_of(i64 global) const;
};

/// By the layout's logical name of the axis ("heads*head_dim + kv_heads*head_dim") with the model's
/// sizes, and its expression; `names` are those of the sections where there are as many.
AxisWords words_of(const Side& side, size_t tensor, size_t axis, std::string index,
                   std::span<const std::string> names);

}  // namespace shardtool::engine
