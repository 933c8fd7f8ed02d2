#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lib/model/bind.h"
#include "lib/model/memory_facts.h"

namespace shardtool::model {

template <class Kind>
const Kind* as(const BoundOp& bound) {
  return std::get_if<Kind>(&bound.op->kind);
}
template <class... Kinds>
bool is_any(const BoundOp& bound) {
  return (std::holds_alternative<Kinds>(bound.op->kind) || ...);
}

/// A value, identified by the op of its layer that makes it.
struct ValueSource {
  std::optional<size_t> op;  ///< nullopt: an earlier layer makes it
  size_t output = 0;
};

/// The ops of one layer and the data flow between them.
class LayerGraph {
 public:
  explicit LayerGraph(const Layer& layer) : layer_(layer) {
    std::map<std::string, ValueSource> made;
    for (size_t i = 0; i < layer.ops.size(); ++i) {
      const ops::Op& op = *layer.ops[i].op;
      std::vector<ValueSource>& inputs = inputs_.emplace_back();
      for (const std::string& name : op.in) inputs.push_back(made[name]);
      for (size_t o = 0; o < op.out.size(); ++o) made[op.out[o]] = {i, o};
    }
    adds_to_stream_.resize(layer.ops.size());
    is_inner_.resize(layer.ops.size());
    if (const auto stream = made.find("x"); stream != made.end()) mark_stream(stream->second);
    for (size_t i = 0; i < layer.ops.size(); ++i) is_inner_[i] = makes_inner(i);
    join();
  }

  const Layer& layer() const { return layer_; }
  const BoundOp& op(size_t i) const { return layer_.ops[i]; }
  const std::vector<ValueSource>& inputs(size_t i) const { return inputs_[i]; }
  /// True if the op's result reaches the layer's result only through sums, norms and similar ops.
  bool adds_to_stream(size_t i) const { return adds_to_stream_[i]; }
  /// Returns the class of the group of joined ops with op i.
  TensorClass class_of(size_t i) const;

 private:
  /// True if the result has the features of the first input, each at its own place.
  static bool passes_on(const BoundOp& bound) {
    return is_any<ops::Add, ops::Scale, ops::Shift, ops::Norm, ops::Normalise, ops::Resize,
                  ops::Softcap, ops::HyperConnection, ops::Multiply, ops::Split, ops::Join,
                  ops::Clamp, ops::Insert>(bound);
  }
  void mark_stream(const ValueSource& value) {
    if (!value.op || adds_to_stream_[*value.op]) return;
    adds_to_stream_[*value.op] = true;
    if (!passes_on(op(*value.op))) return;
    const bool is_mix = is_any<ops::HyperConnection, ops::Resize, ops::Normalise>(op(*value.op));
    for (const ValueSource& input : inputs_[*value.op]) {
      mark_stream(input);
      if (is_mix) break;
    }
  }
  bool is_inner(const ValueSource& value) const { return value.op && is_inner_[*value.op]; }
  /// True if the op's result is inside a block, after a linear op and before the next residual sum.
  /// A residual sum that only this layer uses, and the norm of an attention's projected result,
  /// begin a new block. Requires that is_inner_ is set for earlier ops.
  bool makes_inner(size_t i) const {
    if (adds_to_stream_[i] || is_any<ops::HyperConnection, ops::Insert>(op(i))) return false;
    if (is_any<ops::Linear, ops::Attention, ops::Recurrence, ops::Convolve, ops::Fade, ops::Router,
               ops::Experts>(op(i)))
      return true;
    const auto inner = [this](const ValueSource& input) { return is_inner(input); };
    if (is_any<ops::Add>(op(i))) return std::ranges::all_of(inputs_[i], inner);
    if (is_any<ops::Norm>(op(i)) && is_projected(inputs_[i].front())) return false;
    return std::ranges::any_of(inputs_[i], inner);
  }
  /// True if a linear op made the value from an attention's result.
  bool is_projected(const ValueSource& value) const {
    return is_inner(value) && is_any<ops::Linear>(op(*value.op)) &&
           is_attended(inputs_[*value.op].front());
  }
  bool is_attended(const ValueSource& value) const {
    if (!is_inner(value) || is_any<ops::Linear>(op(*value.op))) return false;
    if (is_any<ops::Attention>(op(*value.op))) return true;
    return std::ranges::any_of(inputs_[*value.op],
                               [this](const ValueSource& input) { return is_attended(input); });
  }
  size_t root(size_t i) const {
    while (joined_to_[i] != i) i = joined_to_[i];
    return i;
  }
  void join() {
    joined_to_.resize(layer_.ops.size());
    std::iota(joined_to_.begin(), joined_to_.end(), size_t{0});
    for (size_t i = 0; i < inputs_.size(); ++i) {
      for (const ValueSource& input : inputs_[i]) {
        if (is_inner(input)) joined_to_[root(i)] = root(*input.op);
      }
    }
  }

  const Layer& layer_;
  std::vector<std::vector<ValueSource>> inputs_;  ///< by op
  std::vector<bool> adds_to_stream_;
  /// True if a linear op precedes the result, and no residual sum is between.
  std::vector<bool> is_inner_;
  std::vector<size_t> joined_to_;
};

/// Returns the memory class of the weights of op i.
TensorClass class_of_op(const LayerGraph& graph, size_t i);

/// Returns the class of weight w of an op. The first two weights of BucketScores are a table and
/// its norm.
TensorClass class_of_weight(const LayerGraph& graph, size_t i, size_t w);

/// Returns the axis of the rows of a linear op's weight.
inline size_t row_axis(const ops::Linear& linear) {
  return linear.kernel == layout::Kernel::kOutIn ? 0 : 1;
}

}  // namespace shardtool::model
