#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/model/flow/walk.h"

// The rules of ops that go along a sequence: convolutions and recurrences, and what they need.
namespace shardtool::model {

using index::AxisMap;
using plan::Placement;
using Kind = Placement::Kind;

namespace {

/// Whether every device has all or nothing of every `unit` features.
bool has_whole_units(const Value& value, i64 unit) {
  return std::all_of(value.features.begin(), value.features.end(),
                     [unit](const AxisMap& map) { return index::coarsen(map, unit).has_value(); });
}

}  // namespace

/// Cut where any input is; whole ones are sliced for free.
Value Walk::side_by_side(const BoundOp& bound) {
  Value y = in(bound, 0);
  y.width = 0;
  size_t devices = 1;
  for (const std::string& name : bound.op->in) {
    const Value& x = values_.at(name);
    y.width += x.width;
    devices = std::max(devices, x.features.size());
    for (size_t a = 0; a < axes(); ++a) {
      if (x.on[a].is(Kind::kSharded)) y.on[a] = x.on[a];
    }
  }
  y.features.clear();
  for (size_t device = 0; device < devices; ++device) {
    std::vector<AxisMap> sections;
    for (const std::string& name : bound.op->in) {
      const std::vector<AxisMap>& maps = values_.at(name).features;
      sections.push_back(maps[maps.size() == 1 ? 0 : device]);
    }
    y.features.push_back(index::concat(sections));
  }
  return y;
}

/// How the features of a value lie of which a weight has one number for every `unit`.
Value Walk::as_value(const BoundOp& bound, size_t weight, i64 unit) const {
  const layout::Layout& layout = layout_of(bound.weights[weight]);
  const WeightRef& ref = bound.op->weights[weight];
  const size_t axis = features_axis(ref);
  Value value = whole(layout.shape()[axis] * unit);
  value.name = ref.names.front();
  value.features = held(layout, axis);
  for (AxisMap& map : value.features) map = index::scale(map, unit);
  const auto cut = cut_by(layout, axis);
  for (size_t a = 0; a < axes(); ++a) {
    if (cut[a]) value.on[a] = Placement::sharded(1);
  }
  return value;
}

/// Feature by feature with weights of its own, a number for every `unit` features.
Value Walk::with_weights(const BoundOp& bound, i64 unit) {
  reduce_all(in(bound, 0));
  std::vector<Value> weights;
  for (size_t i = 0; i < bound.weights.size(); ++i) {
    if (!bound.weights[i].empty()) weights.push_back(as_value(bound, i, unit));
  }
  std::vector<const Value*> operands{&in(bound, 0)};
  for (const Value& weight : weights) operands.push_back(&weight);
  return met(operands);
}

/// A head's decays are where its step is.
Value Walk::apply(const Decay& op, const BoundOp& bound) {
  Value y = with_weights(bound, op.steps ? model_.size(*op.steps) : 1);
  if (!op.states) return y;
  const i64 states = model_.size(*op.states);
  y.width *= states;
  for (AxisMap& map : y.features) map = index::scale(map, states);
  return y;
}

/// An operand whose every `unit` features belong to `values` features of the values.
Value Walk::over_values(const BoundOp& bound, size_t operand, i64 unit, i64 values) {
  Value scaled = in(bound, operand);
  scaled.width = scaled.width / unit * values;
  scaled.features = rescaled(bound, scaled.features, unit, values);
  return scaled;
}

/// Whether a cut value has no feature twice along the axes that cut it.
bool Walk::is_dealt_once(const Value& value) const {
  i64 devices = 1;
  for (size_t a = 0; a < axes(); ++a) {
    if (value.on[a].is(Kind::kSharded)) devices *= mesh_.axes()[a].size;
  }
  i64 features = 0;
  for (const AxisMap& map : value.features) features += map.image_size();
  return features * devices == value.width * std::ssize(value.features);
}

/// Where a unit lies on several devices, each has a part of its sum.
Value Walk::apply(const Sums& op, const BoundOp& bound) {
  const i64 size = model_.size(op.size);
  Value& x = in(bound, 0);
  reduce_all(x);
  if (!has_whole_units(x, size) && !is_dealt_once(x)) make_whole(x);
  Value y = whole(x.width / size);
  y.on = x.on;
  if (has_whole_units(x, size)) {
    y.features = rescaled(bound, x.features, size, 1);
    return y;
  }
  for (Placement& on : y.on) {
    if (on.is(Kind::kSharded)) on = Placement::partial();
  }
  return y;
}

Value Walk::apply(const Normalise& op, const BoundOp& bound) {
  reduce_all(in(bound, 1));
  const Value y = with_weights(bound);
  check_covers(over_values(bound, 1, 1, model_.size(op.size)), y);
  return y;
}

/// A value as it is, by sums over it that every device has.
Value Walk::by_sums(const BoundOp& bound, const Dim& size) {
  for (size_t i = 0; i < bound.op->in.size(); ++i) reduce_all(in(bound, i));
  Value y = in(bound, 0);
  for (size_t i = 1; i < bound.op->in.size(); ++i) {
    check_covers(over_values(bound, i, 1, model_.size(size)), y);
  }
  return y;
}

/// Streams are whole on every device, as layers' inputs are.
Value Walk::apply(const Mix& op, const BoundOp& bound) {
  for (size_t i = 0; i < bound.op->in.size(); ++i) make_whole(in(bound, i));
  return whole(model_.size(op.to) * model_.size(op.size));
}

Value Walk::apply(const Balance&, const BoundOp& bound) {
  make_whole(in(bound, 0));
  return in(bound, 0);
}

/// Whole on every device, as what is made of several positions is.
Value Walk::apply(const Pool& op, const BoundOp& bound) {
  refuse_cut(bound, "mean of positions");
  for (size_t i = 0; i < bound.op->in.size(); ++i) make_whole(in(bound, i));
  return whole(model_.size(op.size));
}

/// A device has the numbers of its heads.
Value Walk::apply(const Fade& op, const BoundOp& bound) {
  Value y = as_value(bound, 0);
  y.name.clear();
  y.width = model_.size(op.heads);
  return y;
}

/// How many heads have the keys of one.
i64 Walk::sharing_keys(const Recurrence& op) const {
  const i64 heads = model_.size(op.heads);
  const i64 key_heads = model_.size(op.key_heads);
  if (key_heads > 0 && heads % key_heads == 0) return heads / key_heads;
  throw Error(ErrorCode::kConfig,
              fmt::format("{} heads of a recurrence cannot share {} heads of keys evenly", heads,
                          key_heads));
}

/// A head's state is where its values are; its keys, queries and gates are there too, or whole.
Value Walk::apply(const Recurrence& op, const BoundOp& bound) {
  constexpr size_t kValues = 2, kDecays = 3;
  for (size_t i = 0; i < bound.op->in.size(); ++i) reduce_all(in(bound, i));
  const Value& values = in(bound, kValues);
  std::vector<bool> whole_values(axes());
  for (size_t a = 0; a < axes(); ++a) whole_values[a] = !values.on[a].is(Kind::kSharded);
  const i64 key_dim = model_.size(op.key_dim);
  const i64 value_dim = model_.size(op.value_dim);
  const i64 shared = sharing_keys(op);
  const i64 decay_dim = op.decay_dim ? model_.size(*op.decay_dim) : 1;
  for (size_t i = 0; i < bound.op->in.size(); ++i) {
    if (i == kValues) continue;
    gather(in(bound, i), whole_values);
    const bool is_key = i < kValues;
    check_covers(is_key ? over_values(bound, i, key_dim, shared * value_dim)
                        : over_values(bound, i, i == kDecays ? decay_dim : 1, value_dim),
                 values);
  }
  std::vector<const Value*> operands{&values};
  Value skip;
  if (!bound.weights.empty() && !bound.weights[0].empty()) {
    skip = as_value(bound, 0, value_dim);
    operands.push_back(&skip);
  }
  return met(operands);
}

}  // namespace shardtool::model
