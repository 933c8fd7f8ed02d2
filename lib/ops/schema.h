#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/mapping/document/dims.h"
#include "lib/mapping/document/layer_set.h"

/// The values that ops of a graph file are written with.
namespace shardtool::ops {

using mapping::Dim;
using mapping::LayerSet;
using mapping::Number;

/// A word of config.json, such as the name of an activation, with the value that holds where the
/// config has no such word.
struct Word {
  std::string config;
  std::string value;
};

/// A stored tensor that an op reads. The checkpoint's first match among the names counts. A name
/// may have choices in braces, and the placeholders <layer>, <expert> and <head>, and those of the
/// graph's layer numbers.
struct WeightRef {
  std::vector<std::string> names;
  bool optional = false;
  std::vector<Dim> shape;    ///< of the stored tensor; empty: one number of any shape
  std::optional<Dim> heads;  ///< if set, one tensor for each <head> below it
};

}  // namespace shardtool::ops
