#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/engine/side.h"

namespace shardtool::engine {

/// A range of an axis with its own units: the q of a fused q, k and v.
struct AxisSection {
  index::Interval indices;  ///< global
  std::string name;         ///< "gate", "q"; empty for an axis of one section
  std::string unit_name;    ///< "head", "kv head"; or equal to AxisWords::index
  i64 unit = 1;             ///< indices per unit
};

/// Names for the indices of a stored axis in messages.
///
/// W1 the sections cover the axis in order
struct AxisWords {
  std::string index = "row";  ///< "row", "column", "element", "matrix"
  std::vector<AxisSection> sections;

  const AxisSection& section_of(i64 global) const;
};

/// Derives the words from the axis' logical name in the layout ("heads*head_dim +
/// kv_heads*head_dim"), the model's sizes, and the axis' expression. `names` are used if there is
/// one per section.
AxisWords words_of(const Side& side, size_t tensor, size_t axis, std::string index,
                   std::span<const std::string> names);

}  // namespace shardtool::engine
