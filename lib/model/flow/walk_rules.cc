#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/index/section.h"
#include "lib/model/flow/walk.h"

// The rules of the ops: how an output lies follows from how the inputs and the weights do.
namespace shardtool::model {

using index::AxisMap;
using layout::Layout;
using plan::Move;
using plan::Placement;
using Kind = Placement::Kind;

namespace {

const Placement kCut = Placement::sharded(1);

bool is_cut(const Value& value) {
  return std::any_of(value.on.begin(), value.on.end(),
                     [](const Placement& on) { return on.is(Kind::kSharded); });
}

}  // namespace

/// By any stored axis, and by which devices have which of the tensors.
std::vector<bool> Walk::cut_at_all(const BoundWeight& weight) const {
  std::vector<bool> cut = dealt_by(mesh_, weight, layouts_);
  const Layout& first = layout_of(weight);
  for (size_t d = 0; d < first.axes().size(); ++d) {
    const auto by_axis = cut_by(first, d);
    for (size_t a = 0; a < axes(); ++a) cut[a] = cut[a] || by_axis[a];
  }
  return cut;
}

/// What every device that runs the layer has of a stored axis.
std::vector<AxisMap> Walk::held(const Layout& layout, size_t d) const {
  std::vector<AxisMap> maps;
  const index::HolderSet& holders = layout.holders();
  for (int h = 0; h < holders.size(); ++h) {
    const i64 rank = layout.ranks()[static_cast<size_t>(h)];
    if (!std::binary_search(devices_.begin(), devices_.end(), rank)) continue;
    maps.push_back(holders.maps(static_cast<int>(d))[static_cast<size_t>(holders.pick(h)[d])]);
  }
  return maps;
}

Value Walk::apply(const Embed& op, const BoundOp& bound) {
  const Layout& table = layout_of(bound.weights.front());
  const size_t rows = features_axis(bound.op->weights.front());
  Value y = whole(model_.size(op.size));
  y.features = held(table, rows + 1);
  const auto by_rows = cut_by(table, rows);
  const auto by_columns = cut_by(table, rows + 1);
  for (size_t a = 0; a < axes(); ++a) {
    if (by_rows[a]) y.on[a] = Placement::partial();
    if (by_columns[a]) y.on[a] = kCut;
  }
  return y;
}

/// Throws kUnsupported where a weight is cut; which stage has it counts for nothing.
void Walk::refuse_cut(const BoundWeight& weight, std::string_view what) const {
  if (weight.empty()) return;
  const Layout& layout = layout_of(weight);
  bool is_any_cut = false;
  for (size_t d = 0; d < layout.axes().size(); ++d) {
    for (const bool cut : cut_by(layout, d)) is_any_cut = is_any_cut || cut;
  }
  if (!is_any_cut) return;
  throw Error(ErrorCode::kUnsupported, fmt::format("no rule takes a {} that is cut", what));
}

/// Whole on every device: convolutions of frames stand before the layers, and are small beside
/// them.
Value Walk::apply(const ConvolveFrames& op, const BoundOp& bound) {
  refuse_cut(bound, "convolution of frames");
  make_whole(in(bound, 0));
  return whole(model_.size(op.frames) / model_.size(op.stride) * model_.size(op.rows));
}

std::vector<bool> Walk::cut_of_columns(const Linear& op, const BoundWeight& weight) const {
  const Layout& layout = layout_of(weight);
  if (layout.axes().size() == 2) {
    return cut_by(layout, op.kernel == layout::Kernel::kOutIn ? 1 : 0);
  }
  for (size_t d = 1; d < layout.axes().size(); ++d) {
    const auto cut = cut_by(layout, d);
    if (std::find(cut.begin(), cut.end(), true) == cut.end()) continue;
    throw Error(ErrorCode::kUnsupported,
                fmt::format("no rule takes a matrix whose columns are several axes, axis {} of "
                            "which is cut",
                            d));
  }
  return std::vector<bool>(axes());
}

/// What every device reads of a value for its rows of a matrix in groups: whole ones.
std::vector<AxisMap> Walk::features_of_groups(const Linear& op, const Layout& weight) {
  const i64 rows = model_.size(op.rows) / model_.size(*op.groups);
  std::vector<AxisMap> features = held(weight, 0);
  for (AxisMap& map : features) {
    const auto groups = index::coarsen(map, rows);
    if (!groups) {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("no rule takes a cut inside a group of {} rows", rows))
          .note("found", to_string(map));
    }
    map = index::scale(*groups, model_.size(op.columns));
  }
  return features;
}

Value Walk::apply(const Linear& op, const BoundOp& bound) {
  const Layout& weight = layout_of(bound.weights.front());
  const size_t out_axis = op.kernel == layout::Kernel::kOutIn ? 0 : 1;
  const auto by_outputs = cut_by(weight, out_axis);
  const auto by_inputs = cut_of_columns(op, bound.weights.front());
  Value& x = in(bound, 0);
  reduce_all(x);
  // A cut input meets the weights' cut of the same features, or is gathered.
  std::vector<bool> unmatched(axes());
  for (size_t a = 0; a < axes(); ++a) unmatched[a] = !(op.groups ? by_outputs : by_inputs)[a];
  gather(x, unmatched);
  const std::vector<AxisMap> read =
      op.groups ? features_of_groups(op, weight) : held(weight, 1 - out_axis);
  if (is_cut(x) && x.features != read) make_whole(x);
  Value y = whole(model_.size(op.rows));
  y.features = held(weight, out_axis);
  for (size_t a = 0; a < axes(); ++a) {
    if (by_outputs[a]) y.on[a] = kCut;
    if (by_inputs[a]) y.on[a] = Placement::partial();
  }
  if (bound.op->is_head) make_whole(y);
  return y;
}

/// Whole on every device: an image has few positions, and a merged one many features.
Value Walk::apply(const Merge& op, const BoundOp& bound) {
  Value& x = in(bound, 0);
  make_whole(x);
  if (op.form == Merge::Form::kMean) return x;
  return whole(model_.size(op.patches.count) * x.width);
}

Value Walk::apply(const ClassToken& op, const BoundOp& bound) {
  refuse_cut(bound, "class token");
  make_whole(in(bound, 0));
  return whole(model_.size(op.size));
}

Value Walk::apply(const Insert&, const BoundOp& bound) {
  make_whole(in(bound, 0));
  make_whole(in(bound, 1));
  return whole(in(bound, 0).width);
}

/// Features counted in units of `from` (a head, a head's sections), each unit now of `to`.
std::vector<AxisMap> Walk::rescaled(const BoundOp& bound, const std::vector<AxisMap>& maps,
                                    i64 from, i64 to) const {
  std::vector<AxisMap> result;
  for (const AxisMap& map : maps) {
    const auto units = index::coarsen(map, from);
    if (!units) {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("a cut of '{}' falls inside a head of {} features",
                              bound.op->in.front(), from))
          .note("found", to_string(map));
    }
    result.push_back(index::scale(*units, to));
  }
  return result;
}

/// What is on P is reduced once, and not part by part.
void Walk::split(const Split& op, const BoundOp& bound) {
  Value& x = in(bound, 0);
  reduce_all(x);
  i64 per_head = 0;
  for (const Dim& section : op.sections) per_head += model_.size(section);
  i64 begin = 0;
  for (size_t i = 0; i < op.sections.size(); ++i) {
    const i64 size = model_.size(op.sections[i]);
    Value section = x;
    if (op.order == Split::Order::kConcat) {
      section.width = size;
      for (AxisMap& map : section.features) map = index::section_of(map, begin, size);
    } else {
      section.width = x.width / per_head * size;
      section.features = rescaled(bound, x.features, per_head, size);
    }
    begin += size;
    out(bound, std::move(section), i);
  }
}

Value Walk::apply(const OfLayer& op, const BoundOp& bound) {
  const i64 size = model_.size(op.size);
  Value y = in(bound, 0);
  y.width = size;
  for (AxisMap& map : y.features) map = index::section_of(map, layer_.number * size, size);
  return y;
}

Value Walk::apply(const Join& op, const BoundOp& bound) {
  for (size_t i = 0; i < bound.op->in.size(); ++i) reduce_all(in(bound, i));
  if (op.order == Join::Order::kConcat) return side_by_side(bound);
  const i64 heads = model_.size(op.heads);
  i64 per_head = 0;
  for (const Dim& section : op.sections) per_head += model_.size(section);
  Value y = in(bound, 0);
  y.features = rescaled(bound, y.features, y.width / heads, per_head);
  y.width = heads * per_head;
  return y;
}

Value Walk::apply(const Norm& op, const BoundOp& bound) {
  if (op.per_head) return nonlinear(bound);
  make_whole(in(bound, 0));
  return in(bound, 0);
}

Value Walk::apply(const PositionBias& op, const BoundOp& bound) {
  const Layout& table = layout_of(bound.weights.front());
  const i64 buckets = model_.size(op.buckets);
  Value y = whole(model_.size(op.heads) * buckets);
  y.features = held(table, 1);
  for (AxisMap& map : y.features) map = index::scale(map, buckets);
  const auto by_heads = cut_by(table, 1);
  for (size_t a = 0; a < axes(); ++a) {
    if (by_heads[a]) y.on[a] = kCut;
  }
  return y;
}

/// Heads are where the queries are; the table is whole.
Value Walk::apply(const BucketScores& op, const BoundOp& bound) {
  constexpr size_t kProjection = 3;
  for (size_t i = 0; i < kProjection; ++i) refuse_cut(bound.weights[i], "table of buckets");
  Value y = nonlinear(bound);
  const i64 head_dim = model_.size(op.head_dim);
  const i64 buckets = model_.size(op.buckets.count);
  y.features = rescaled(bound, y.features, head_dim, buckets);
  y.width = y.width / head_dim * buckets;
  return y;
}

/// Keys, values and biases are cut where the queries are; those of an index and of entries are
/// whole.
Value Walk::apply(const Attention& op, const BoundOp& bound) {
  Value& q = in(bound, 0);
  const size_t biases = bound.op->in.size() - biases_of(op);
  std::vector<bool> whole_queries(axes());
  reduce_all(q);
  for (size_t a = 0; a < axes(); ++a) whole_queries[a] = !q.on[a].is(Kind::kSharded);
  for (size_t i = 1; i < bound.op->in.size(); ++i) {
    reduce_all(in(bound, i));
    if (i < 3 || i >= biases) gather(in(bound, i), whole_queries);
    if (i >= 3 && i < biases) make_whole(in(bound, i));
  }
  const i64 key_dim = model_.size(op.key_dim);
  const i64 value_dim = model_.size(op.value_dim);
  Value y = q;
  y.width = q.width / key_dim * value_dim;
  y.features = rescaled(bound, q.features, key_dim, value_dim);
  return y;
}

Value Walk::elementwise(const BoundOp& bound) {
  std::vector<const Value*> operands;
  for (const std::string& name : bound.op->in) operands.push_back(&values_.at(name));
  return met(operands);
}

/// A value whose every feature counts for several of a wider one.
Value Walk::repeated(const Value& value, i64 width) const {
  if (width % value.width != 0) {
    throw Error(ErrorCode::kUnsupported, fmt::format("{} features of '{}' cannot meet {} evenly",
                                                     value.width, value.name, width));
  }
  Value y = value;
  y.width = width;
  for (AxisMap& map : y.features) map = index::scale(map, width / value.width);
  return y;
}

/// The result is as wide as the widest operand and cut where any is; a whole one is sliced for
/// free.
Value Walk::met(const std::vector<const Value*>& operands) const {
  i64 width = 0;
  for (const Value* operand : operands) width = std::max(width, operand->width);
  Value y = repeated(*operands.front(), width);
  for (size_t i = 1; i < operands.size(); ++i) {
    const Value other = repeated(*operands[i], width);
    if (is_cut(other)) y.features = other.features;
    for (size_t a = 0; a < axes(); ++a) {
      if (y.on[a].is(Kind::kReplicated)) y.on[a] = other.on[a];
    }
  }
  for (const Value* operand : operands) check_covers(repeated(*operand, width), y);
  return y;
}

/// That every device has the features of an operand which it has of the result.
void Walk::check_covers(const Value& operand, const Value& result) const {
  if (operand.features == result.features || !is_cut(operand)) return;
  for (size_t i = 0; i < result.features.size(); ++i) {
    const AxisMap& wanted = result.features[i];
    const AxisMap& had = operand.features[operand.features.size() == 1 ? 0 : i];
    if (compose(index::inverse(had), wanted).image_size() == wanted.image_size()) continue;
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("device {} has other features of '{}' than of what it meets", i, operand.name))
        .note("has", to_string(had))
        .note("needs", to_string(wanted))
        .help("the two tensors are cut in different ways; a fused one needs a cut of each part");
  }
}

/// One Partial factor stays so (a sum times a number is the sum of the products); two do not.
Value Walk::apply(const Multiply&, const BoundOp& bound) {
  Value& a = in(bound, 0);
  Value& b = in(bound, 1);
  std::vector<bool> both(axes());
  for (size_t m = 0; m < axes(); ++m) {
    const bool a_whole = a.on[m].is(Kind::kReplicated);
    const bool b_whole = b.on[m].is(Kind::kReplicated);
    both[m] = !a_whole && !b_whole;
  }
  reduce(a, both);
  reduce(b, both);
  return elementwise(bound);
}

Value Walk::apply(const Add&, const BoundOp& bound) {
  Value& a = in(bound, 0);
  Value& b = in(bound, 1);
  std::vector<bool> one_sided(axes());
  for (size_t m = 0; m < axes(); ++m) {
    one_sided[m] = a.on[m].is(Kind::kPartial) != b.on[m].is(Kind::kPartial);
  }
  reduce(a, one_sided);
  reduce(b, one_sided);
  return elementwise(bound);
}

Value Walk::apply(const Router& op, const BoundOp& bound) {
  make_whole(in(bound, 0));
  Value scores = whole(model_.size(op.experts));
  for (size_t a = 0; a < axes(); ++a) {
    const Layout& weight = layout_of(bound.weights.front());
    if (cut_by(weight, 0)[a]) scores.on[a] = kCut;
    if (cut_by(weight, 1)[a]) scores.on[a] = Placement::partial();
  }
  if (op.words) refuse_cut(bound.weights[1], "table of words' experts");
  make_whole(scores);
  return scores;
}

Value Walk::apply(const Experts& op, const BoundOp& bound) {
  for (size_t i = 0; i < bound.op->in.size(); ++i) make_whole(in(bound, i));
  Value y = whole(model_.size(op.embed));
  for (const BoundWeight& weight : bound.weights) {
    if (weight.empty()) continue;
    const auto cut = cut_at_all(weight);
    for (size_t a = 0; a < axes(); ++a) {
      if (cut[a] && !has_own_tokens(a)) y.on[a] = Placement::partial();
    }
  }
  if (!own_tokens_.empty()) {
    step_.before.push_back(
        {in(bound, 0).name, {Move::kAllToAll, own_tokens_, in(bound, 0).width, step_.of_prompt}});
    step_.after.push_back({Move::kAllToAll, own_tokens_, y.width, step_.of_prompt});
  }
  return y;
}

}  // namespace shardtool::model
