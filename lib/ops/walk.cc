#include "lib/ops/walk.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "lib/base/error.h"
#include "lib/ops/op_table.h"
#include "lib/ops/widths.h"

namespace shardtool::ops {

using index::AxisMap;
using layout::Layout;
using plan::Move;
using plan::Placement;
using Kind = Placement::Kind;

namespace {

/// Number of elements of the tensor on a holder.
i64 held_elements(const index::HolderSet& holders, int holder) {
  i64 elements = 1;
  for (int axis = 0; axis < holders.rank(); ++axis) {
    const auto map = static_cast<size_t>(holders.pick(holder)[static_cast<size_t>(axis)]);
    elements *= holders.maps(axis)[map].image_size();
  }
  return elements;
}

i64 devices_along(const mesh::Mesh& mesh, const std::vector<bool>& along) {
  i64 devices = 1;
  for (size_t a = 0; a < along.size(); ++a) {
    if (along[a]) devices *= mesh.axes()[a].size;
  }
  return devices;
}

Error counted_twice(const mesh::Mesh& mesh, std::string_view what, const std::vector<bool>& along) {
  std::vector<std::string> axes;
  for (size_t a = 0; a < along.size(); ++a) {
    if (along[a]) axes.push_back(mesh.axes()[a].name);
  }
  return Error(ErrorCode::kUnsupported,
               fmt::format("{} is summed over {}, and devices there hold some of it twice", what,
                           fmt::join(axes, "*")))
      .help("cut it over whole axes of the mesh, such as a of a=2,b=2 instead of tp:(1)2 of tp=4");
}

}  // namespace

const plan::OpRow& rule_for(const std::vector<plan::OpRow>& rules, size_t which,
                            const Placement& placement) {
  const auto found = std::ranges::find_if(
      rules, [&](const plan::OpRow& rule) { return rule.operands[which] == placement; });
  if (found != rules.end()) return *found;
  throw Error(ErrorCode::kUnsupported,
              fmt::format("no rule takes operand {} on {}", which, to_string(placement)));
}

bool is_cut(const Value& value) {
  return std::any_of(value.on.begin(), value.on.end(),
                     [](const Placement& on) { return on.is(Kind::kSharded); });
}

i64 most_features(const Value& value) {
  i64 most = 0;
  for (const AxisMap& map : value.features) most = std::max(most, map.local_size());
  return most;
}

/// Largest number of elements of the op's weights on one device.
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

std::vector<AxisMap> Walk::held(const Layout& layout, size_t d) const {
  std::vector<AxisMap> maps;
  const index::HolderSet& holders = layout.holders();
  for (int h = 0; h < holders.size(); ++h) {
    const i64 rank = layout.ranks()[static_cast<size_t>(h)];
    if (!runs_on(rank)) continue;
    maps.push_back(holders.maps(static_cast<int>(d))[static_cast<size_t>(holders.pick(h)[d])]);
  }
  return maps;
}

bool Walk::is_dealt_once(const std::vector<AxisMap>& held, i64 width,
                         const std::vector<bool>& along) const {
  i64 indices = 0;
  for (const AxisMap& map : held) indices += map.image_size();
  return indices * devices_along(mesh_, along) == width * std::ssize(held);
}

void Walk::require_dealt_once(const BoundWeight& weight, size_t d,
                              const std::vector<bool>& along) const {
  const Layout& layout = layout_of(weight);
  if (!is_dealt_once(held(layout, d), layout.shape()[d], along))
    throw counted_twice(mesh_, fmt::format("axis {} of a weight", d), along);
}

void Walk::require_dealt_once(const BoundWeight& weight, const std::vector<bool>& along) const {
  i64 held = 0, all = 0;
  std::unordered_map<const Layout*, i64> held_of;  // many experts share a layout
  for (const size_t tensor : weight) {
    const Layout& layout = layouts_(tensor);
    const auto [found, is_new] = held_of.try_emplace(&layout, 0);
    for (size_t h = 0; is_new && h < layout.ranks().size(); ++h) {
      if (runs_on(layout.ranks()[h]))
        found->second += held_elements(layout.holders(), static_cast<int>(h));
    }
    held += found->second;
    all += element_count(layout.shape()).value_or(0);
  }
  if (held * devices_along(mesh_, along) != all * std::ssize(layer_.devices))
    throw counted_twice(mesh_, "a weight of experts", along);
}

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

void Walk::exchange(Move move, Value& value, const std::vector<size_t>& along) {
  Exchange exchange{move, {}, value.width, step_.of_prompt};
  for (const size_t a : along) exchange.over.push_back({mesh_.axes()[a].name});
  for (size_t a = 0; a < axes(); ++a) {
    const bool other = std::find(along.begin(), along.end(), a) == along.end();
    if (other && value.on[a].is(Kind::kSharded)) {
      exchange.elements = ceil_div(exchange.elements, mesh_.axes()[a].size);
    }
  }
  for (const size_t a : along) value.on[a] = Placement::replicated();
  const bool is_whole = std::none_of(value.on.begin(), value.on.end(),
                                     [](const auto& on) { return on.is(Kind::kSharded); });
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
    if (along[a] && value.on[a].is(Kind::kPartial)) partial.push_back(a);
  }
  if (!partial.empty()) exchange(Move::kAllReduce, value, partial);
}

void Walk::gather(Value& value, const std::vector<bool>& along) {
  std::vector<size_t> cut;
  bool any = false;
  for (size_t a = 0; a < axes(); ++a) {
    if (!value.on[a].is(Kind::kSharded)) continue;
    cut.push_back(a);
    any = any || along[a];
  }
  if (any) exchange(Move::kAllGather, value, cut);
}

/// Returns the mesh axes along which no rule accepts the inputs.
std::vector<bool> Walk::unmet(const std::vector<plan::OpRow>& rules, const BoundOp& bound) const {
  std::vector<bool> found(axes());
  for (size_t a = 0; a < axes(); ++a) {
    found[a] = std::ranges::none_of(rules, [&](const plan::OpRow& rule) {
      for (size_t i = 0; i < bound.op->in.size(); ++i) {
        const Placement& on = values_.at(bound.op->in[i]).on[a];
        const bool is_sliced = on.is(Kind::kReplicated) && rule.operands[i].is(Kind::kSharded);
        if (on != rule.operands[i] && !is_sliced) return false;
      }
      return true;
    });
  }
  return found;
}

std::vector<plan::OpRow> Walk::rules(const BoundOp& bound) const {
  std::vector<i64> widths;
  for (const std::string& name : bound.op->in) widths.push_back(values_.at(name).width);
  return rules_of(RuleSite(model_, bound, widths));
}

void Walk::meet(const BoundOp& bound) {
  const auto rules = this->rules(bound);
  const size_t operands = bound.op->in.size();
  const std::vector<bool> to_reduce = unmet(rules, bound);
  for (size_t i = 0; i < operands; ++i) reduce(in(bound, i), to_reduce);
  const std::vector<bool> to_gather = unmet(rules, bound);
  for (size_t i = 0; i < operands; ++i) gather(in(bound, i), to_gather);
}

Value Walk::nonlinear(const BoundOp& bound) {
  meet(bound);
  return in(bound, 0);
}

Value Walk::elementwise(const BoundOp& bound) {
  std::vector<const Value*> operands;
  for (const std::string& name : bound.op->in) operands.push_back(&values_.at(name));
  return met(operands);
}

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

Value Walk::over_values(const BoundOp& bound, size_t operand, i64 unit, i64 values) {
  Value scaled = in(bound, operand);
  scaled.width = scaled.width / unit * values;
  scaled.features = rescaled(bound, scaled.features, unit, values);
  return scaled;
}

/// Widens a value: each of its features counts for several features of the result.
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

void Walk::check_covers(const Value& operand, const Value& result) const {
  if (operand.features == result.features || !is_cut(operand)) return;
  for (size_t i = 0; i < result.features.size(); ++i) {
    const AxisMap& wanted = result.features[i];
    const AxisMap& had = operand.features[operand.features.size() == 1 ? 0 : i];
    if (compose(index::inverse(had), wanted).image_size() == wanted.image_size()) continue;
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("rank {} has other features of '{}' than of the value it is combined with",
                    layer_.devices[i], operand.name))
        .note("has", to_string(had))
        .note("needs", to_string(wanted))
        .help("the two tensors are cut in different ways; a fused one needs a cut of each part");
  }
}

/// Returns true if all inputs are an encoder's values.
bool Walk::is_of_prompt(const BoundOp& bound) const {
  if (bound.op->in.empty()) return layer_.of_prompt;
  return std::ranges::all_of(
      bound.op->in, [this](const std::string& name) { return values_.at(name).of_prompt; });
}

Step Walk::run(const BoundOp& bound) {
  std::vector<i64> widths;
  for (const std::string& name : bound.op->in) widths.push_back(values_.at(name).width);
  check_widths(model_, bound, widths);
  step_ = {};
  step_.op = &bound;
  step_.widths = std::move(widths);
  step_.work.weight_elements = elements(bound);
  step_.of_prompt = is_of_prompt(bound);
  std::vector<Value> made = bound.op->row->place(*this, bound);
  for (const std::string& name : bound.op->in) step_.read.push_back(values_.at(name).on);
  Work& work = step_.work;
  if (!bound.op->in.empty()) work.input_elements = most_features(in(bound, 0));
  work.output_elements = most_features(made.front());
  for (size_t i = 0; i < made.size(); ++i) {
    made[i].of_prompt = step_.of_prompt;
    step_.made.push_back(made[i].on);
    step_.made_widths.push_back(made[i].width);
    put(bound.op->out[i], std::move(made[i]));
  }
  return std::move(step_);
}

}  // namespace shardtool::ops
