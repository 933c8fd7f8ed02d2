#include "shardtool/model/flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "shardtool/base/error.h"
#include "shardtool/index/section.h"
#include "shardtool/model/mesh_cuts.h"

namespace shardtool::model {
namespace {

using plan::Move;
using plan::Placement;
using Kind = Placement::Kind;
using index::AxisMap;
using layout::Layout;

const Placement kCut = Placement::sharded(1);

bool is(const Placement& placement, Kind kind) {
  return placement.is(kind);
}

bool is_cut(const Value& value) {
  return std::any_of(value.on.begin(), value.on.end(),
                     [](const Placement& on) { return is(on, Kind::kSharded); });
}

/// The elements of the tensor that a holder has.
i64 held_elements(const index::HolderSet& holders, int holder) {
  i64 elements = 1;
  for (int axis = 0; axis < holders.rank(); ++axis) {
    const auto map = static_cast<size_t>(holders.pick(holder)[static_cast<size_t>(axis)]);
    elements *= holders.maps(axis)[map].image_size();
  }
  return elements;
}

/// Walks the ops of one layer and keeps how every value lies.
class Walk {
 public:
  Walk(const Model& model, const LayoutOf& layouts, const mesh::Mesh& mesh,
       const mesh::Over& own_tokens)
      : model_(model), layouts_(layouts), mesh_(mesh), own_tokens_(own_tokens) {}

  void put(const std::string& name, Value value) {
    value.name = name;
    values_[name] = std::move(value);
  }
  Value take(const std::string& name) { return std::move(values_.at(name)); }
  void step(const BoundOp& bound);
  void run(const BoundOp& bound);
  LayerFlow finish() && { return std::move(flow_); }

 private:
  size_t axes() const { return mesh_.axes().size(); }
  Value& in(const BoundOp& bound, size_t i) { return values_.at(bound.op->in[i]); }
  void out(const BoundOp& bound, Value value, size_t i = 0) {
    step_.made.push_back(value.on);
    put(bound.op->out[i], std::move(value));
  }
  Value whole(i64 width) const {
    return {{}, width, std::vector<Placement>(axes()), {AxisMap::identity(width)}};
  }

  /// Which mesh axes cut stored axis d of a tensor.
  std::vector<bool> cut_by(const Layout& layout, size_t d) const {
    return model::cut_by(mesh_, layout, d);
  }
  std::vector<bool> cut_at_all(const BoundWeight& weight) const;
  bool has_own_tokens(size_t axis) const {
    const mesh::AxisRef ref{mesh_.axes()[axis].name};
    return std::find(own_tokens_.begin(), own_tokens_.end(), ref) != own_tokens_.end();
  }
  const Layout& layout_of(const BoundWeight& weight) const { return layouts_(weight.front()); }
  static std::vector<AxisMap> held(const Layout& layout, size_t d);
  std::vector<AxisMap> rescaled(const BoundOp& bound, const std::vector<AxisMap>& maps, i64 from,
                                i64 to) const;
  i64 elements(const BoundOp& bound) const;

  void exchange(Move move, Value& value, const std::vector<size_t>& along);
  void reduce(Value& value, const std::vector<bool>& along);
  void gather(Value& value, const std::vector<bool>& along);
  void make_whole(Value& value) {
    reduce(value, std::vector<bool>(axes(), true));
    gather(value, std::vector<bool>(axes(), true));
  }
  void reduce_all(Value& value) { reduce(value, std::vector<bool>(axes(), true)); }

  Value apply(const Embed& op, const BoundOp& bound);
  Value apply(const Linear& op, const BoundOp& bound);
  Value apply(const Join& op, const BoundOp& bound);
  Value apply(const Norm& op, const BoundOp& bound);
  Value apply(const Rope&, const BoundOp& bound) { return nonlinear(bound); }
  Value apply(const Attention& op, const BoundOp& bound);
  Value apply(const Activation&, const BoundOp& bound) { return nonlinear(bound); }
  Value apply(const Multiply&, const BoundOp& bound);
  Value apply(const Add&, const BoundOp& bound);
  Value apply(const Scale&, const BoundOp& bound) { return in(bound, 0); }
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
  Value elementwise(const BoundOp& bound);
  void check_covers(const Value& operand, const Value& result) const;

  const Model& model_;
  const LayoutOf& layouts_;
  const mesh::Mesh& mesh_;
  const mesh::Over& own_tokens_;
  std::map<std::string, Value> values_;
  Step step_;  ///< that is being walked
  LayerFlow flow_;
};

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

/// What every device has of a stored axis.
std::vector<AxisMap> Walk::held(const Layout& layout, size_t d) {
  std::vector<AxisMap> maps;
  const index::HolderSet& holders = layout.holders();
  for (int h = 0; h < holders.size(); ++h) {
    maps.push_back(holders.maps(static_cast<int>(d))[static_cast<size_t>(holders.pick(h)[d])]);
  }
  return maps;
}

/// The most elements of the op's weights that one device has.
i64 Walk::elements(const BoundOp& bound) const {
  std::vector<i64> of_rank(static_cast<size_t>(mesh_.size()), 0);
  for (const BoundWeight& weight : bound.weights) {
    for (const size_t tensor : weight) {
      const Layout& layout = layouts_(tensor);
      const index::HolderSet& holders = layout.holders();
      for (size_t h = 0; h < layout.ranks().size(); ++h) {
        of_rank[static_cast<size_t>(layout.ranks()[h])] +=
            held_elements(holders, static_cast<int>(h));
      }
    }
  }
  return *std::max_element(of_rank.begin(), of_rank.end());
}

void Walk::exchange(Move move, Value& value, const std::vector<size_t>& along) {
  Exchange exchange{move, {}, value.width};
  for (const size_t a : along) exchange.over.push_back({mesh_.axes()[a].name});
  for (size_t a = 0; a < axes(); ++a) {
    const bool other = std::find(along.begin(), along.end(), a) == along.end();
    if (other && is(value.on[a], Kind::kSharded)) {
      exchange.elements = ceil_div(exchange.elements, mesh_.axes()[a].size);
    }
  }
  for (const size_t a : along) value.on[a] = Placement::replicated();
  const bool is_whole = std::none_of(value.on.begin(), value.on.end(),
                                     [](const auto& on) { return is(on, Kind::kSharded); });
  if (is_whole) value.features = {AxisMap::identity(value.width)};
  if (value.name.empty()) {
    step_.after.push_back(std::move(exchange));
  } else {
    step_.before.push_back({value.name, std::move(exchange)});
  }
}

void Walk::reduce(Value& value, const std::vector<bool>& along) {
  std::vector<size_t> partial;
  for (size_t a = 0; a < axes(); ++a) {
    if (along[a] && is(value.on[a], Kind::kPartial)) partial.push_back(a);
  }
  if (!partial.empty()) exchange(Move::kAllReduce, value, partial);
}

/// A value that must be whole along one axis is gathered along all that cut it: what devices have
/// of it is known cut or whole, and nothing between.
void Walk::gather(Value& value, const std::vector<bool>& along) {
  std::vector<size_t> cut;
  bool any = false;
  for (size_t a = 0; a < axes(); ++a) {
    if (!is(value.on[a], Kind::kSharded)) continue;
    cut.push_back(a);
    any = any || along[a];
  }
  if (any) exchange(Move::kAllGather, value, cut);
}

Value Walk::apply(const Embed& op, const BoundOp& bound) {
  const Layout& table = layout_of(bound.weights.front());
  Value y = whole(model_.size(op.size));
  y.features = held(table, 1);
  const auto by_rows = cut_by(table, 0);
  const auto by_columns = cut_by(table, 1);
  for (size_t a = 0; a < axes(); ++a) {
    if (by_rows[a]) y.on[a] = Placement::partial();
    if (by_columns[a]) y.on[a] = kCut;
  }
  return y;
}

Value Walk::apply(const Linear& op, const BoundOp& bound) {
  const Layout& weight = layout_of(bound.weights.front());
  const size_t out_axis = op.kernel == layout::Kernel::kOutIn ? 0 : 1;
  const auto by_outputs = cut_by(weight, out_axis);
  const auto by_inputs = cut_by(weight, 1 - out_axis);
  Value& x = in(bound, 0);
  reduce_all(x);
  // A cut input meets the weights' cut of the same features, or is gathered.
  std::vector<bool> unmatched(axes());
  for (size_t a = 0; a < axes(); ++a) unmatched[a] = !by_inputs[a];
  gather(x, unmatched);
  if (is_cut(x) && x.features != held(weight, 1 - out_axis)) make_whole(x);
  Value y = whole(model_.size(op.rows));
  y.features = held(weight, out_axis);
  for (size_t a = 0; a < axes(); ++a) {
    if (by_outputs[a]) y.on[a] = kCut;
    if (by_inputs[a]) y.on[a] = Placement::partial();
  }
  if (bound.op->is_head) make_whole(y);
  return y;
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

void Walk::split(const Split& op, const BoundOp& bound) {
  Value& x = in(bound, 0);
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

Value Walk::apply(const Join& op, const BoundOp& bound) {
  for (size_t i = 0; i < bound.op->in.size(); ++i) reduce_all(in(bound, i));
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

Value Walk::apply(const Attention& op, const BoundOp& bound) {
  Value& q = in(bound, 0);
  for (size_t i = 0; i < 3; ++i) reduce_all(in(bound, i));
  std::vector<bool> whole_queries(axes());
  for (size_t a = 0; a < axes(); ++a) whole_queries[a] = !is(q.on[a], Kind::kSharded);
  for (size_t i = 1; i < 3; ++i) gather(in(bound, i), whole_queries);
  for (size_t i = 3; i < bound.op->in.size(); ++i) make_whole(in(bound, i));
  const i64 key_dim = model_.size(op.key_dim);
  const i64 value_dim = model_.size(op.value_dim);
  Value y = q;
  y.width = q.width / key_dim * value_dim;
  y.features = rescaled(bound, q.features, key_dim, value_dim);
  return y;
}

/// The result is cut where any operand is; a whole one is sliced for free, and one of a single
/// feature goes with all.
Value Walk::elementwise(const BoundOp& bound) {
  Value y = in(bound, 0);
  for (size_t i = 1; i < bound.op->in.size(); ++i) {
    const Value& other = in(bound, i);
    if (other.width > y.width || (other.width == y.width && is_cut(other))) {
      y.features = other.features;
    }
    y.width = std::max(y.width, other.width);
    for (size_t a = 0; a < axes(); ++a) {
      if (is(y.on[a], Kind::kReplicated)) y.on[a] = other.on[a];
    }
  }
  for (const std::string& name : bound.op->in) check_covers(values_.at(name), y);
  return y;
}

/// That every device has the features of an operand which it has of the result.
void Walk::check_covers(const Value& operand, const Value& result) const {
  if (operand.features == result.features || operand.width == 1 || !is_cut(operand)) return;
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
    const bool a_whole = is(a.on[m], Kind::kReplicated);
    const bool b_whole = is(b.on[m], Kind::kReplicated);
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
    one_sided[m] = is(a.on[m], Kind::kPartial) != is(b.on[m], Kind::kPartial);
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
    step_.before.push_back({in(bound, 0).name, {Move::kAllToAll, own_tokens_, in(bound, 0).width}});
    step_.after.push_back({Move::kAllToAll, own_tokens_, y.width});
  }
  return y;
}

/// The features that the device with most of them has.
i64 most_of(const Value& value) {
  i64 most = 0;
  for (const AxisMap& map : value.features) most = std::max(most, map.local_size());
  return most;
}

void Walk::step(const BoundOp& bound) {
  step_ = {&bound, {}, {}, {}, {elements(bound)}};
  if (const auto* op = std::get_if<Split>(&bound.op->kind)) {
    split(*op, bound);
  } else {
    run(bound);
  }
  flow_.steps.push_back(std::move(step_));
}

void Walk::run(const BoundOp& bound) {
  Value y = std::visit(
      [&](const auto& op) -> Value {
        if constexpr (std::is_same_v<std::decay_t<decltype(op)>, Split>) {
          throw Error(ErrorCode::kInternal, "a split has several outputs");
        } else {
          return apply(op, bound);
        }
      },
      bound.op->kind);
  Work& work = step_.work;
  if (!bound.op->in.empty()) work.input_elements = most_of(in(bound, 0));
  work.output_elements = most_of(y);
  if (const auto* attention = std::get_if<Attention>(&bound.op->kind)) {
    work.cache_elements = attention->cache ? model_.size(*attention->cache)
                                           : most_of(in(bound, 1)) + most_of(in(bound, 2));
  }
  out(bound, std::move(y));
}

}  // namespace

std::vector<Exchange> exchanges(const Step& step) {
  std::vector<Exchange> all;
  for (const Step::Input& input : step.before) all.push_back(input.exchange);
  all.insert(all.end(), step.after.begin(), step.after.end());
  return all;
}

std::vector<Exchange> exchanges(const LayerFlow& flow) {
  std::vector<Exchange> all;
  for (const Step& step : flow.steps) {
    const auto some = exchanges(step);
    all.insert(all.end(), some.begin(), some.end());
  }
  if (flow.handoff) all.push_back(*flow.handoff);
  return all;
}

LayerFlow flow(const Model& model, const Layer& layer, const LayoutOf& layouts,
               const mesh::Mesh& mesh, const mesh::Over& own_tokens, Value& x) {
  Walk walk(model, layouts, mesh, own_tokens);
  walk.put("x", x);
  for (const BoundOp& op : layer.ops) walk.step(op);
  x = layer.block == "end" ? walk.take(layer.ops.back().op->out.front()) : walk.take("x");
  return std::move(walk).finish();
}

}  // namespace shardtool::model
