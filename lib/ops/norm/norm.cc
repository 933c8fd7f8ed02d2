#include "lib/ops/norm/norm.h"

#include <algorithm>

#include "lib/ops/decoder.h"
#include "lib/ops/walk.h"
#include "lib/ops/widths.h"

namespace shardtool::ops {
namespace {

using index::AxisMap;
using plan::Placement;
using Kind = plan::Placement::Kind;

/// Returns true if every device has either all features of a unit or none; a unit has `unit`
/// features.
bool has_whole_units(const Value& value, i64 unit) {
  return std::all_of(value.features.begin(), value.features.end(),
                     [unit](const AxisMap& map) { return index::coarsen(map, unit).has_value(); });
}

/// Returns true if no feature of a cut value is on two devices along the axes that cut it.
bool is_dealt_once(const Walk& walk, const Value& value) {
  std::vector<bool> along;
  for (const Placement& on : value.on) along.push_back(on.is(Kind::kSharded));
  return walk.is_dealt_once(value.features, value.width, along);
}

/// Rules of a value with sums over every `size` features: they are cut together, or the sums are
/// whole.
std::vector<plan::OpRow> by_sums(const RuleSite& site, const Dim& size) {
  const std::vector<Placement> weights(site.weights(), Placement::sharded(0));
  auto rows = site.by_tokens();
  std::vector<Placement> in(site.inputs(), kCut);
  if (site.width(0) > site.size(size)) rows.push_back(site.row(in, weights, kCut));
  std::fill(in.begin() + 1, in.end(), kWhole);
  rows.push_back(site.row(in, weights, kCut));
  return rows;
}

/// Places a value as it is. Every device has the sums over its features.
Value by_sums_of(Walk& walk, const BoundOp& bound, const Dim& size) {
  for (size_t i = 0; i < bound.op->in.size(); ++i) walk.reduce_all(walk.in(bound, i));
  Value y = walk.in(bound, 0);
  for (size_t i = 1; i < bound.op->in.size(); ++i) {
    walk.check_covers(walk.over_values(bound, i, 1, walk.size(size)), y);
  }
  return y;
}

}  // namespace

void decode(Norm& op, OpDecoder& in) {
  const auto size = [&op] {
    return op.heads ? std::vector{*op.heads, op.size} : std::vector{op.size};
  };
  in.finish({{"kind",
              [&op](const JsonValue& v) {
                op.kind = v.one_of<Norm::Kind>({{"rms", Norm::Kind::kRms},
                                                {"layer", Norm::Kind::kLayer},
                                                {"l2", Norm::Kind::kL2}});
              },
              true},
             in.weight("weight", size, false),
             in.weight("bias", size, false),
             in.dim("size", op.size),
             in.number("eps", op.eps, true),
             in.flag("per_head", op.per_head),
             in.optional_dim("heads", op.heads),
             in.flag("one_plus_weight", op.one_plus_weight),
             in.flag("cast_after_weight", op.cast_after_weight)});
  if (op.heads && !op.per_head) in.value().refuse("a norm \"per_head\" where it has \"heads\"");
  for (WeightRef& ref : in.op().weights) {
    if (ref.names.front().find("<head>") == std::string::npos) continue;
    if (!op.heads) in.value().refuse("a norm with \"heads\" where a name has <head>");
    ref.shape = {op.size};
    ref.heads = op.heads;
  }
}

void check(const Norm& op, const Widths& widths) {
  op.per_head ? widths.in_units(0, widths.size(op.size)) : widths.exactly(0, widths.size(op.size));
}

/// The planner's rules of norm. A norm per head is elementwise in heads.
std::vector<plan::OpRow> rules(const Norm& op, const RuleSite& site) {
  if (!op.per_head) return plan::norm_rows({2, 2}, 1, static_cast<int>(site.weights()));
  auto rows = site.unary(plan::nonlinear_rows({2, 2}));
  if (op.heads) {
    for (size_t i = 0; i < site.weights(); ++i) {
      rows.back().operands[1 + i] = Placement::sharded(0);
    }
  }
  return rows;
}

Value place(const Norm& /*op*/, Walk& walk, const BoundOp& bound) {
  walk.meet(bound);
  return walk.in(bound, 0);
}

bool is_launched(const Norm& op) {
  return !op.per_head;
}

void decode(Sums& op, OpDecoder& in) {
  in.finish({in.dim("size", op.size)});
}

void decode_plain(Sums& op, OpDecoder& in) {
  op.squared = false;
  decode(op, in);
}

void check(const Sums& op, const Widths& widths) {
  widths.in_units(0, widths.size(op.size));
}

/// A device has only a summand of a sum whose unit spans several devices.
std::vector<plan::OpRow> rules(const Sums& op, const RuleSite& site) {
  auto rows = site.by_tokens();
  if (site.width(0) > site.size(op.size)) rows.push_back(site.all(kCut, kCut));
  rows.push_back(site.all(kCut, kSum));
  return rows;
}

Value place(const Sums& op, Walk& walk, const BoundOp& bound) {
  const i64 size = walk.size(op.size);
  Value& x = walk.in(bound, 0);
  walk.reduce_all(x);
  if (!has_whole_units(x, size) && !is_dealt_once(walk, x)) walk.make_whole(x);
  Value y = walk.whole(x.width / size);
  y.on = x.on;
  if (has_whole_units(x, size)) {
    y.features = walk.rescaled(bound, x.features, size, 1);
    return y;
  }
  for (Placement& on : y.on) {
    if (on.is(Kind::kSharded)) on = Placement::partial();
  }
  return y;
}

void decode(Normalise& op, OpDecoder& in) {
  in.finish({in.weight("weight", [&op] { return std::vector{op.features}; }),
             in.dim("features", op.features), in.dim("size", op.size),
             in.number("eps", op.eps, true)});
}

void check(const Normalise& op, const Widths& widths) {
  widths.exactly(0, widths.size(op.features));
  widths.sums_of_the_first(op.size);
}

std::vector<plan::OpRow> rules(const Normalise& op, const RuleSite& site) {
  return by_sums(site, op.size);
}

Value place(const Normalise& op, Walk& walk, const BoundOp& bound) {
  walk.reduce_all(walk.in(bound, 1));
  const Value y = walk.with_weights(bound);
  walk.check_covers(walk.over_values(bound, 1, 1, walk.size(op.size)), y);
  return y;
}

void decode(Resize& op, OpDecoder& in) {
  in.finish({in.dim("size", op.size), in.number("least", op.least)});
}

void check(const Resize& op, const Widths& widths) {
  widths.sums_of_the_first(op.size);
}

std::vector<plan::OpRow> rules(const Resize& op, const RuleSite& site) {
  return by_sums(site, op.size);
}

Value place(const Resize& op, Walk& walk, const BoundOp& bound) {
  return by_sums_of(walk, bound, op.size);
}

void decode(GaussianTopK& op, OpDecoder& in) {
  in.finish({in.dim("size", op.size),
             {"shares", [&op](const JsonValue& v) { op.shares = decode_paths(v); }, true}});
}

void check(const GaussianTopK& op, const Widths& widths) {
  widths.sums_of_the_first(op.size);
}

std::vector<plan::OpRow> rules(const GaussianTopK& op, const RuleSite& site) {
  return by_sums(site, op.size);
}

Value place(const GaussianTopK& op, Walk& walk, const BoundOp& bound) {
  return by_sums_of(walk, bound, op.size);
}

}  // namespace shardtool::ops
