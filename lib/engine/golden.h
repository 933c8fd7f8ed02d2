#pragma once

#include <string>
#include <vector>

#include "lib/engine/side.h"

namespace shardtool::engine {

/// What another implementation computed: the input of every layer, what the last one made, and the
/// logits, for some sequences of equal length. Values are tokens x features, row-major.
struct Golden {
  i64 sequences = 0;
  i64 length = 0;
  std::vector<i64> tokens;
  std::vector<float> given;                ///< beside tokens; empty: nothing, and words alone
  std::vector<std::vector<float>> hidden;  ///< empty: not told
  std::vector<float> logits;
};

/// How far our f32 run is from it.
struct GoldenDifference {
  std::string value;  ///< "input of layer 1", "logits"
  i64 checked = 0;
  double worst = 0;  ///< largest difference over the root mean square
};

/// Runs the whole model in f32 on the golden inputs. This judges the graph, not the shards. Throws
/// kShapeMismatch when the golden values have other sizes than the model's.
std::vector<GoldenDifference> compare_with_golden(const Side& whole, const Golden& golden);

}  // namespace shardtool::engine
