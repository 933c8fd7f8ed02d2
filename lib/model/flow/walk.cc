#include "lib/model/flow/walk.h"

#include "lib/base/error.h"
#include "lib/model/flow/widths.h"

// How a walk goes: steps, the moves that they need, and what they cost.
namespace shardtool::model {

using index::AxisMap;
using layout::Layout;
using plan::Move;
using plan::Placement;
using Kind = Placement::Kind;

namespace {

/// The elements of the tensor that a holder has.
i64 held_elements(const index::HolderSet& holders, int holder) {
  i64 elements = 1;
  for (int axis = 0; axis < holders.rank(); ++axis) {
    const auto map = static_cast<size_t>(holders.pick(holder)[static_cast<size_t>(axis)]);
    elements *= holders.maps(axis)[map].image_size();
  }
  return elements;
}

/// The features that the device with most of them has.
i64 most_of(const Value& value) {
  i64 most = 0;
  for (const AxisMap& map : value.features) most = std::max(most, map.local_size());
  return most;
}

}  // namespace

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

/// A value that must be whole along one axis is gathered along all that cut it: what devices have
/// of it is known cut or whole, and nothing between.
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

/// What is made of nothing but an encoder's values is one.
bool Walk::is_of_prompt(const BoundOp& bound) const {
  if (bound.op->in.empty()) return layer_.of_prompt;
  return std::ranges::all_of(
      bound.op->in, [this](const std::string& name) { return values_.at(name).of_prompt; });
}

void Walk::step(const BoundOp& bound) {
  std::vector<i64> widths;
  for (const std::string& name : bound.op->in) widths.push_back(values_.at(name).width);
  check_widths(model_, bound, widths);
  step_ = {&bound, {}, {}, {}, {elements(bound)}, is_of_prompt(bound)};
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
    step_.reads_prompt = in(bound, 1).of_prompt && !step_.of_prompt;
    work.cache_elements = attention->cache ? model_.size(*attention->cache)
                                           : most_of(in(bound, 1)) + most_of(in(bound, 2));
  }
  out(bound, std::move(y));
}

}  // namespace shardtool::model
