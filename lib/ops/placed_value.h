#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/layout/layout.h"
#include "lib/ops/bound_op.h"
#include "lib/plan/placement/placement.h"

namespace shardtool::ops {

/// Returns the layout of a stored tensor, by its index in the specs.
using LayoutOf = std::function<const layout::Layout&(size_t tensor)>;

/// A move of activations between two ops: every group of devices along `over` does it for every
/// token.
struct Exchange {
  plan::Move move = plan::Move::kNothing;
  mesh::Over over;
  i64 elements = 0;        ///< per token, that a group jointly owns
  bool of_prompt = false;  ///< of an encoder's tokens, once for each prompt

  bool operator==(const Exchange&) const = default;
};

/// The work of the busiest device per token in one op.
struct Work {
  i64 weight_elements = 0;  ///< of its weights, on the device
  i64 input_elements = 0;   ///< of its first input
  i64 output_elements = 0;  ///< of its first output
  i64 cache_elements = 0;   ///< of an attention: cached per position on the device
};

/// The placement of one value of a layer.
struct Value {
  std::string name;                 ///< empty while an op is making it
  i64 width = 0;                    ///< features of the whole value
  std::vector<plan::Placement> on;  ///< per mesh axis: R, S(1) (its features) or P
  /// The features of each of the layer's devices, in the order of their ranks; one map stands for
  /// all devices if no axis cuts the value.
  std::vector<index::AxisMap> features;
  bool of_prompt = false;  ///< of an encoder's tokens
};

struct ValueMove {
  std::string value;
  Exchange exchange;
};
/// One op with its moves: first of values that it reads, then, after it has run, of its result
/// (logits, a router's scores).
struct Step {
  const BoundOp* op = nullptr;
  std::vector<ValueMove> before;
  std::vector<Exchange> after;
  /// Per output, its placement per mesh axis after all moves.
  std::vector<std::vector<plan::Placement>> made;
  Work work;
  bool of_prompt = false;     ///< computed of an encoder's tokens, once for each prompt
  bool reads_prompt = false;  ///< an attention of other tokens to an encoder's
};

}  // namespace shardtool::ops
