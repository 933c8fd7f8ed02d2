#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ops/mesh_cuts.h"
#include "lib/ops/placed_value.h"
#include "lib/ops/rules.h"

namespace shardtool::ops {

/// The layer that a walk places.
struct WalkedLayer {
  i64 number = -1;               ///< -1 outside a stack's layers
  bool of_prompt = false;        ///< layer of an encoder
  std::span<const i64> devices;  ///< devices that run the layer, ascending
};

/// The placement of a layer's values, op after op. An op's place() calls it: it moves inputs to
/// where the op needs them, and derives the output's placement from those of inputs and weights, by
/// the op's rules (rules.h). In short, they are those of tensor parallelism:
///
///     linear      W cut by rows:    x R -> y S         W cut by columns: x S or R -> y P
///     embedding   by rows: P        by columns: S
///     attention   q cut by heads -> context S; keys and values S or whole
///     recurrence  values cut by heads -> S; queries, keys, decays and gates S or whole
///     convolve    S or whole as x and its weights are; also step and decay; fade as its weight
///     norm        its features whole; over single heads: as it is
///     squares     x S -> P if the features of a sum are on several devices, else S; also sums
///     resize      x as it is, not on P, its sums whole; also cutoff        mix     whole
///     act, rope   as it is, not on P (also xielu)   add   P + P -> P, else P is reduced first
///     experts     cut in any way -> P      logits   gathered
///
/// A Partial value is reduced, and a cut one gathered, once, before the first op that needs it so.
/// The arguments of the constructor outlive the walk.
class Walk {
 public:
  Walk(const ModelSizes& model, const WalkedLayer& layer, const LayoutOf& layouts,
       const mesh::Mesh& mesh, const mesh::Over& own_tokens)
      : model_(model), layer_(layer), layouts_(layouts), mesh_(mesh), own_tokens_(own_tokens) {}

  /// Adds a value under its name; later ops may read it.
  void put(const std::string& name, Value value) {
    value.name = name;
    values_[name] = std::move(value);
  }
  Value take(const std::string& name) { return std::move(values_.at(name)); }
  /// Places the next op. Throws kUnsupported for placements that no rule accepts, with both of
  /// them.
  Step run(const BoundOp& bound);
  /// True if the placement of an op depends on the layer's number.
  bool has_used_number() const { return has_used_number_; }

  // The rest is only for place() of an op.

  i64 size(const Dim& dim) const { return model_.size(dim); }
  /// Returns the layer's number, on which its placement then depends.
  i64 layer() {
    has_used_number_ = true;
    return layer_.number;
  }
  const mesh::Mesh& mesh() const { return mesh_; }
  size_t axes() const { return mesh_.axes().size(); }
  const LayoutOf& layouts() const { return layouts_; }
  /// The axes along which every device has its own tokens.
  const mesh::Over& own_tokens() const { return own_tokens_; }
  bool has_own_tokens(size_t axis) const {
    const mesh::AxisRef ref{mesh_.axes()[axis].name};
    return std::find(own_tokens_.begin(), own_tokens_.end(), ref) != own_tokens_.end();
  }
  /// Step of the op that is being placed.
  Step& step() { return step_; }

  Value& value(const std::string& name) { return values_.at(name); }
  Value& in(const BoundOp& bound, size_t i) { return values_.at(bound.op->in[i]); }
  /// Returns a new value of `width` features that every device has whole.
  Value whole(i64 width) const {
    return {{}, width, std::vector<plan::Placement>(axes()), {index::AxisMap::identity(width)}};
  }

  const layout::Layout& layout_of(const BoundWeight& weight) const {
    return layouts_(weight.front());
  }
  /// Returns the mesh axes that cut stored axis d of a tensor.
  std::vector<bool> cut_by(const layout::Layout& layout, size_t d) const {
    return ops::cut_by(mesh_, layout, d);
  }
  /// Returns the indices of a stored axis on every device that runs the layer.
  std::vector<index::AxisMap> held(const layout::Layout& layout, size_t d) const;
  /// Returns true if the devices along these mesh axes together hold each of `width` indices once.
  bool is_dealt_once(const std::vector<index::AxisMap>& held, i64 width,
                     const std::vector<bool>& along) const;
  /// Throws kUnsupported unless the devices along these mesh axes together hold each index of
  /// stored axis d of a weight once: a sum over them would count the others more than once.
  void require_dealt_once(const BoundWeight& weight, size_t d,
                          const std::vector<bool>& along) const;
  /// The same of all elements of a weight's tensors.
  void require_dealt_once(const BoundWeight& weight, const std::vector<bool>& along) const;
  /// Throws kUnsupported if a weight is cut along any axis. Its pipeline stage does not matter.
  void refuse_cut(const BoundWeight& weight, std::string_view what) const;
  void refuse_cut(const BoundOp& bound, std::string_view what) const {
    for (const BoundWeight& weight : bound.weights) refuse_cut(weight, what);
  }
  /// Replaces units of `from` features (a head, a section of a head) by units of `to` features.
  std::vector<index::AxisMap> rescaled(const BoundOp& bound,
                                       const std::vector<index::AxisMap>& maps, i64 from,
                                       i64 to) const;

  /// Reduces a value that is Partial along these mesh axes.
  void reduce(Value& value, const std::vector<bool>& along);
  /// Gathers a value that is cut along one of these mesh axes. Gathers along all axes that cut it,
  /// so that a value is either cut as known or whole.
  void gather(Value& value, const std::vector<bool>& along);
  void reduce_all(Value& value) { reduce(value, std::vector<bool>(axes(), true)); }
  void make_whole(Value& value) {
    reduce_all(value);
    gather(value, std::vector<bool>(axes(), true));
  }

  /// The op's rules.
  std::vector<plan::OpRow> rules(const BoundOp& bound) const;
  /// Moves the inputs until a rule accepts them along every mesh axis: reduces Partial values, then
  /// gathers cut ones. Whole inputs are sliced for free. Weights are left where they are.
  void meet(const BoundOp& bound);
  /// Returns the placement of the first input after reducing it if it is Partial.
  Value nonlinear(const BoundOp& bound);
  /// Places a result that combines all inputs feature by feature.
  Value elementwise(const BoundOp& bound);
  /// Places a result that combines the first input feature by feature with the op's weights, which
  /// have one number per `unit` features.
  Value with_weights(const BoundOp& bound, i64 unit = 1);
  /// Returns the placement of features for which a weight has one number per `unit`.
  Value as_value(const BoundOp& bound, size_t weight, i64 unit = 1) const;
  /// Returns an operand of which every `unit` features belong to `values` features of another
  /// value.
  Value over_values(const BoundOp& bound, size_t operand, i64 unit, i64 values);
  /// Places the result of an elementwise op: as wide as the widest operand, and cut if any operand
  /// is. Whole operands are sliced for free.
  Value met(const std::vector<const Value*>& operands) const;
  /// Throws kUnsupported unless every device has the operand's features for its part of the result.
  void check_covers(const Value& operand, const Value& result) const;

 private:
  bool is_of_prompt(const BoundOp& bound) const;
  bool runs_on(i64 rank) const {
    return std::binary_search(layer_.devices.begin(), layer_.devices.end(), rank);
  }
  i64 elements(const BoundOp& bound) const;
  void exchange(plan::Move move, Value& value, const std::vector<size_t>& along);
  Value repeated(const Value& value, i64 width) const;
  std::vector<bool> unmet(const std::vector<plan::OpRow>& rules, const BoundOp& bound) const;

  const ModelSizes& model_;
  WalkedLayer layer_;
  const LayoutOf& layouts_;
  const mesh::Mesh& mesh_;
  const mesh::Over& own_tokens_;
  std::map<std::string, Value> values_;
  Step step_;
  bool has_used_number_ = false;
};

/// Returns the rule with this placement of operand `which`. Throws kUnsupported if there is none.
const plan::OpRow& rule_for(const std::vector<plan::OpRow>& rules, size_t which,
                            const plan::Placement& placement);
/// Returns true if a mesh axis cuts the value.
bool is_cut(const Value& value);
/// Largest number of features on one device.
i64 most_features(const Value& value);

}  // namespace shardtool::ops
