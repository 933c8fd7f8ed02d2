#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/layout/layout.h"
#include "lib/model/bind.h"
#include "lib/plan/placement/placement.h"

namespace shardtool::model {

/// Where a stored tensor lies, by its index in the specs.
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

/// What the busiest device does per token in one op.
struct Work {
  i64 weight_elements = 0;  ///< of its weights, on the device
  i64 input_elements = 0;   ///< of its first input
  i64 output_elements = 0;  ///< of its output
  i64 cache_elements = 0;   ///< of an attention: what a position keeps on the device
};

/// A layer's forward pass on a mesh: how every value lies follows from how the weights do, by the
/// rules of tensor parallelism:
///
///     linear      W cut by rows:    x R -> y S         W cut by columns: x S or R -> y P
///     embedding   by rows: P        by columns: S
///     attention   q cut by heads -> context S; keys and values S or whole
///     recurrence  values cut by heads -> S; queries, keys, decays and gates S or whole
///     convolve    S or whole as x and its weights are; so step and decay; fade as its weight is
///     norm        its features whole; over single heads: as it is
///     squares     x S -> P where the features of a sum are on several devices, else S; so sums
///     resize      x as it is, not on P, its sums whole; so cutoff      mix     whole
///     act, rope   as it is, not on P (so xielu)     add   P + P -> P, else P is reduced first
///     experts     cut in any way -> P      logits   gathered
///
/// Which tokens a device has is said apart, by the mesh axes along which every device has tokens of
/// its own. Along such an axis nothing but experts is cut: tokens go to the devices of their
/// experts and their results come back (an all_to_all each way), where devices that all have the
/// same tokens add up what their experts made of them (an all_reduce). Engines deal the tokens out
/// where they can (token_axes), and that is priced; a proof gives every device every token, so that
/// every replica of a weight meets them all.
///
/// A Partial value is reduced, and a cut one gathered, once, where an op first needs it so.
///
struct ValueMove {
  std::string value;
  Exchange exchange;
};
/// One op, and the moves for it: first of values that it reads, then, when it has run, of what it
/// made (logits, a router's scores).
struct Step {
  const BoundOp* op = nullptr;
  std::vector<ValueMove> before;
  std::vector<Exchange> after;
  /// Per output, how it lies per mesh axis when all of that is done.
  std::vector<std::vector<plan::Placement>> made;
  Work work;
  bool of_prompt = false;     ///< computed of an encoder's tokens, once for each prompt
  bool reads_prompt = false;  ///< an attention of other tokens to an encoder's
};
struct LayerFlow {
  std::vector<Step> steps;
  std::vector<ValueMove> handoffs;  ///< to the devices of the layer after it
};
/// All moves of a step, or of a layer, in their order.
std::vector<Exchange> exchanges(const Step& step);
std::vector<Exchange> exchanges(const LayerFlow& flow);

/// How a value of one layer lies.
struct Value {
  std::string name;                 ///< empty while an op is making it
  i64 width = 0;                    ///< features of the whole value
  std::vector<plan::Placement> on;  ///< per mesh axis: R, S(1) (its features) or P
  /// Which features each of the layer's devices has, in the order of their ranks; of a value that
  /// no axis cuts one map stands for all.
  std::vector<index::AxisMap> features;
  bool of_prompt = false;  ///< of an encoder's tokens
};

/// The values that go from one layer to the next, by their names.
using Stream = std::map<std::string, Value>;

/// Walks one layer, by its number among the model's: `stream` is what the layer before passes, and
/// becomes what this one does.
/// `own_tokens` are the axes along which devices have tokens of their own, some of token_axes.
/// Throws kUnsupported for placements that no rule takes, with both of them.
LayerFlow flow(const Model& model, size_t layer, const LayoutOf& layouts, const mesh::Mesh& mesh,
               const mesh::Over& own_tokens, Stream& stream);

}  // namespace shardtool::model
