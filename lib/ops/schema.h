#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/mapping/document/dims.h"
#include "lib/mapping/document/layer_set.h"

/// Types of the values in ops of a graph file.
namespace shardtool::ops {

using mapping::Dim;
using mapping::LayerSet;
using mapping::Number;

/// A word of config.json, such as the name of an activation, with a default.
struct Word {
  std::string config;
  std::string value;
};

/// A stored tensor that an op reads: the first of these names in the checkpoint. A name may have
/// choices in braces, and placeholders: <layer>, <expert>, <head>, and the graph's layer numbers.
struct WeightRef {
  std::vector<std::string> names;
  bool optional = false;
  std::vector<Dim> shape;    ///< shape of the stored tensor; empty: one number of any shape
  std::optional<Dim> heads;  ///< if set, one tensor per <head> below this number
};

}  // namespace shardtool::ops
