#pragma once

#include <string>
#include <vector>

#include "lib/engine/side.h"

namespace shardtool::engine {

/// Values from another implementation: the input of every layer, the result of the last layer, and
/// the logits, for some sequences of equal length. Values are rows x features, row-major; the rows
/// are the positions of the first sequence, then those of the next.
struct Golden {
  i64 sequences = 0;
  i64 length = 0;
  std::vector<i64> tokens;
  std::vector<i64> positions;  ///< positions with values, below `length`; empty: all
  std::vector<float> given;    ///< rows of the extra input, such as image features; empty: none
  std::vector<std::vector<float>> hidden;  ///< empty: not compared
  std::vector<float> logits;
};

/// Difference between our f32 run and one golden value.
struct GoldenDifference {
  std::string value;  ///< "input of layer 1", "logits"
  i64 checked = 0;
  double worst = 0;  ///< largest difference over the root mean square
};

/// Runs the whole model in f32 on the golden inputs. This tests the graph, not the shards. Throws
/// kShapeMismatch if a golden value and the model's value differ in size, for a token that is not
/// in the vocabulary, and for more hidden states than the model has. Golden values are finite.
std::vector<GoldenDifference> compare_with_golden(const Side& whole, const Golden& golden);

}  // namespace shardtool::engine
