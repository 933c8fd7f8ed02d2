#pragma once

#include <string>
#include <vector>

#include "lib/index/axis_map.h"
#include "lib/ops/sections/sections.h"

namespace shardtool::ops {

/// A section of a fused axis on one device: its map, and for every local index the local index in
/// the fused axis.
struct Section {
  index::AxisMap features;
  std::vector<i64> from;
};
/// Throws kUnsupported, naming `what`, if the device lacks a part of a section.
std::vector<Section> sections_of(Split::Order order, const index::AxisMap& fused,
                                 const std::vector<i64>& sizes, const std::string& what);

}  // namespace shardtool::ops
