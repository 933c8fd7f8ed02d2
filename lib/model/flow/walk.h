#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/model/flow/flow.h"
#include "lib/model/flow/handoff.h"
#include "lib/model/flow/mesh_cuts.h"

namespace shardtool::model {

/// Walks the ops of a layer and keeps how every value lies on the devices that run it. All that it
/// is given outlives it.
class Walk {
 public:
  Walk(const Model& model, size_t layer, const LayoutOf& layouts, const mesh::Mesh& mesh,
       const mesh::Over& own_tokens)
      : model_(model),
        layer_(model.layers[layer]),
        layouts_(layouts),
        mesh_(mesh),
        own_tokens_(own_tokens),
        devices_(devices_of(model, layer, layouts)) {}

  /// A value that ops may read from now on, under its name.
  void put(const std::string& name, Value value) {
    value.name = name;
    values_[name] = std::move(value);
  }
  Value take(const std::string& name) { return std::move(values_.at(name)); }
  /// The next op: moves what it reads to where its rule needs it, and puts what it makes. Throws
  /// kUnsupported for placements that no rule takes, with both of them.
  void step(const BoundOp& bound);
  LayerFlow finish() && { return std::move(flow_); }

 private:
  void run(const BoundOp& bound);
  size_t axes() const { return mesh_.axes().size(); }
  Value& in(const BoundOp& bound, size_t i) { return values_.at(bound.op->in[i]); }
  bool is_of_prompt(const BoundOp& bound) const;
  void out(const BoundOp& bound, Value value, size_t i = 0) {
    value.of_prompt = step_.of_prompt;
    step_.made.push_back(value.on);
    put(bound.op->out[i], std::move(value));
  }
  Value whole(i64 width) const {
    return {{}, width, std::vector<plan::Placement>(axes()), {index::AxisMap::identity(width)}};
  }

  /// Which mesh axes cut stored axis d of a tensor.
  std::vector<bool> cut_by(const layout::Layout& layout, size_t d) const {
    return model::cut_by(mesh_, layout, d);
  }
  /// By any stored axis, and by which devices have which of the tensors.
  std::vector<bool> cut_at_all(const BoundWeight& weight) const;
  bool has_own_tokens(size_t axis) const {
    const mesh::AxisRef ref{mesh_.axes()[axis].name};
    return std::find(own_tokens_.begin(), own_tokens_.end(), ref) != own_tokens_.end();
  }
  const layout::Layout& layout_of(const BoundWeight& weight) const {
    return layouts_(weight.front());
  }
  /// What every device that runs the layer has of a stored axis.
  std::vector<index::AxisMap> held(const layout::Layout& layout, size_t d) const;
  std::vector<index::AxisMap> rescaled(const BoundOp& bound,
                                       const std::vector<index::AxisMap>& maps, i64 from,
                                       i64 to) const;
  i64 elements(const BoundOp& bound) const;

  void exchange(plan::Move move, Value& value, const std::vector<size_t>& along);
  void reduce(Value& value, const std::vector<bool>& along);
  void gather(Value& value, const std::vector<bool>& along);
  void make_whole(Value& value) {
    reduce(value, std::vector<bool>(axes(), true));
    gather(value, std::vector<bool>(axes(), true));
  }
  void reduce_all(Value& value) { reduce(value, std::vector<bool>(axes(), true)); }

  Value apply(const Embed& op, const BoundOp& bound);
  Value apply(const Given& op, const BoundOp&) { return whole(model_.size(op.size)); }
  Value apply(const Sinusoids& op, const BoundOp&) { return whole(model_.size(op.size)); }
  Value apply(const ConvolveFrames& op, const BoundOp& bound);
  Value apply(const Linear& op, const BoundOp& bound);
  Value apply(const Merge& op, const BoundOp& bound);
  Value apply(const Insert&, const BoundOp& bound);
  Value apply(const ClassToken& op, const BoundOp& bound);
  Value apply(const Join& op, const BoundOp& bound);
  Value apply(const Norm& op, const BoundOp& bound);
  Value apply(const Sums& op, const BoundOp& bound);
  Value apply(const Normalise& op, const BoundOp& bound);
  Value apply(const Resize& op, const BoundOp& bound) { return by_sums(bound, op.size); }
  Value apply(const Cutoff& op, const BoundOp& bound) { return by_sums(bound, op.size); }
  Value apply(const Mix& op, const BoundOp& bound);
  Value apply(const Balance&, const BoundOp& bound);
  Value apply(const OfLayer& op, const BoundOp& bound);
  Value apply(const Rope&, const BoundOp& bound) { return nonlinear(bound); }
  Value apply(const PositionBias& op, const BoundOp& bound);
  Value apply(const BucketScores& op, const BoundOp& bound);
  Value apply(const Attention& op, const BoundOp& bound);
  Value apply(const Convolve&, const BoundOp& bound) { return with_weights(bound); }
  Value apply(const Pool& op, const BoundOp& bound);
  Value apply(const StepSize&, const BoundOp& bound) { return with_weights(bound); }
  Value apply(const Decay& op, const BoundOp& bound);
  Value apply(const Fade& op, const BoundOp& bound);
  Value apply(const Recurrence& op, const BoundOp& bound);
  Value apply(const Activation&, const BoundOp& bound) { return nonlinear(bound); }
  Value apply(const Xielu&, const BoundOp& bound) { return nonlinear(bound); }
  Value apply(const Multiply&, const BoundOp& bound);
  Value apply(const Add&, const BoundOp& bound);
  Value apply(const Scale&, const BoundOp& bound) { return in(bound, 0); }
  Value apply(const Shift&, const BoundOp& bound) { return with_weights(bound); }
  Value apply(const Temper&, const BoundOp& bound) { return in(bound, 0); }
  Value apply(const Softcap&, const BoundOp& bound) { return nonlinear(bound); }
  Value apply(const Clamp&, const BoundOp& bound) { return nonlinear(bound); }
  Value apply(const Router& op, const BoundOp& bound);
  Value apply(const Experts& op, const BoundOp& bound);
  void split(const Split& op, const BoundOp& bound);
  Value nonlinear(const BoundOp& bound) {
    reduce_all(in(bound, 0));
    return in(bound, 0);
  }
  Value by_sums(const BoundOp& bound, const Dim& size);
  Value side_by_side(const BoundOp& bound);
  Value elementwise(const BoundOp& bound);
  void refuse_cut(const BoundWeight& weight, std::string_view what) const;
  void refuse_cut(const BoundOp& bound, std::string_view what) const {
    for (const BoundWeight& weight : bound.weights) refuse_cut(weight, what);
  }
  std::vector<bool> cut_of_columns(const Linear& op, const BoundWeight& weight) const;
  std::vector<index::AxisMap> features_of_groups(const Linear& op, const layout::Layout& weight);
  Value repeated(const Value& value, i64 width) const;
  Value met(const std::vector<const Value*>& operands) const;
  Value with_weights(const BoundOp& bound, i64 unit = 1);
  Value as_value(const BoundOp& bound, size_t weight, i64 unit = 1) const;
  bool is_dealt_once(const Value& value) const;
  i64 sharing_keys(const Recurrence& op) const;
  Value over_values(const BoundOp& bound, size_t operand, i64 unit, i64 values);
  void check_covers(const Value& operand, const Value& result) const;

  const Model& model_;
  const Layer& layer_;
  const LayoutOf& layouts_;
  const mesh::Mesh& mesh_;
  const mesh::Over& own_tokens_;
  std::span<const i64> devices_;
  std::map<std::string, Value> values_;
  Step step_;  ///< that is being walked
  LayerFlow flow_;
};

}  // namespace shardtool::model
