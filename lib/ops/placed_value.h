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

/// A move of activations between two ops. Every group of devices along `over` executes it for every
/// token.
struct Exchange {
  plan::Move move = plan::Move::kNothing;
  mesh::Over over;
  i64 elements = 0;        ///< elements per token that a group jointly owns
  bool of_prompt = false;  ///< over an encoder's tokens, once per prompt

  bool operator==(const Exchange&) const = default;
};

/// Work per token of the busiest device in one op.
struct Work {
  i64 weight_elements = 0;  ///< elements of the op's weights on the device
  i64 input_elements = 0;   ///< elements of the first input
  i64 output_elements = 0;  ///< elements of the first output
  i64 cache_elements = 0;   ///< cached elements per position on the device, for an attention
  i64 experts = 0;          ///< experts of which the device has weights
};

/// The placement of one value of a layer.
struct Value {
  std::string name;                 ///< empty until the op has completed
  i64 width = 0;                    ///< features of the whole value
  std::vector<plan::Placement> on;  ///< per mesh axis: R, S(1) (its features) or P
  /// The features on each of the layer's devices, in the order of ranks; a single map if all
  /// devices have the same.
  std::vector<index::AxisMap> features;
  bool of_prompt = false;  ///< over an encoder's tokens

  bool operator==(const Value&) const = default;
};

struct ValueMove {
  std::string value;
  Exchange exchange;
};
/// One op with its moves: those of its inputs before it runs, and those of its result (logits, a
/// router's scores) after.
struct Step {
  const BoundOp* op = nullptr;
  std::vector<ValueMove> before;
  std::vector<Exchange> after;
  /// For each input, its placement per mesh axis after the moves.
  std::vector<std::vector<plan::Placement>> read;
  std::vector<i64> widths;  ///< features of each input
  /// For each output, its placement per mesh axis after all moves.
  std::vector<std::vector<plan::Placement>> made;
  std::vector<i64> made_widths;  ///< features of each output
  Work work;
  bool of_prompt = false;     ///< runs over an encoder's tokens, once per prompt
  bool reads_prompt = false;  ///< an attention to an encoder's tokens
  /// The input of a product is cut, but not like the columns of its weight: it is gathered first.
  bool is_realigned = false;
  bool reads_norm = false;  ///< a norm of the same layer made the first input
};

}  // namespace shardtool::ops
