#include "lib/ops/recurrence/recurrence.h"

#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/ops/decoder.h"
#include "lib/ops/pricing.h"
#include "lib/ops/walk.h"
#include "lib/ops/widths.h"

namespace shardtool::ops {
namespace {

using index::AxisMap;
using plan::Placement;
using Kind = plan::Placement::Kind;

/// Returns the number of heads that share a head of keys.
i64 sharing_keys(const Recurrence& op, const Walk& walk) {
  const i64 heads = walk.size(op.heads);
  const i64 key_heads = walk.size(op.key_heads);
  if (key_heads > 0 && heads % key_heads == 0) return heads / key_heads;
  throw Error(ErrorCode::kConfig,
              fmt::format("{} heads of a recurrence cannot share {} heads of keys evenly", heads,
                          key_heads));
}

}  // namespace

void decode(Convolve& op, OpDecoder& in) {
  const Dim one = mapping::parse_dim("1");
  in.finish({in.weight("weight",
                       [&op, one] {
                         return std::vector{op.features, one, op.taps};
                       }),
             in.weight(
                 "bias", [&op] { return std::vector{op.features}; }, false),
             in.dim("features", op.features), in.dim("taps", op.taps)});
}

void check(const Convolve& op, const Widths& widths) {
  widths.exactly(0, widths.size(op.features));
}

/// A position needs those before it: tokens are not cut.
std::vector<plan::OpRow> rules(const Convolve& /*op*/, const RuleSite& site) {
  auto rows = site.with_weights();
  std::erase_if(rows, [](const plan::OpRow& row) { return row.result == kTokens; });
  return rows;
}

Value place(const Convolve& /*op*/, Walk& walk, const BoundOp& bound) {
  return walk.with_weights(bound);
}

bool is_launched(const Convolve& /*op*/) {
  return true;
}

void decode(CompressedKv& op, OpDecoder& in) {
  in.finish({in.weight("bias",
                       [&op] {
                         return std::vector{op.taps, op.width};
                       }),
             in.dim("size", op.size), in.dim("width", op.width), in.dim("taps", op.taps)});
}

void check(const CompressedKv& op, const Widths& widths) {
  widths.exactly(0, widths.positive(op.width));
  widths.exactly(1, widths.size(op.width));
}

std::vector<plan::OpRow> rules(const CompressedKv& /*op*/, const RuleSite& site) {
  return site.whole();
}

/// Every device has all features, since the op combines several positions.
Value place(const CompressedKv& op, Walk& walk, const BoundOp& bound) {
  walk.refuse_cut(bound, "mean of positions");
  for (size_t i = 0; i < bound.op->in.size(); ++i) walk.make_whole(walk.in(bound, i));
  return walk.whole(walk.size(op.size));
}

bool is_launched(const CompressedKv& /*op*/) {
  return true;
}

void decode(StepSize& op, OpDecoder& in) {
  in.finish({in.weight("bias", [&op] { return std::vector{op.heads}; }), in.dim("heads", op.heads),
             in.number("least", op.least), in.number("most", op.most)});
}

void check(const StepSize& op, const Widths& widths) {
  widths.exactly(0, widths.size(op.heads));
}

std::vector<plan::OpRow> rules(const StepSize& /*op*/, const RuleSite& site) {
  return site.with_weights();
}

Value place(const StepSize& /*op*/, Walk& walk, const BoundOp& bound) {
  return walk.with_weights(bound);
}

void decode(Decay& op, OpDecoder& in) {
  std::optional<std::vector<Dim>> stored;
  in.finish(
      {in.weight("rate",
                 [&] {
                   if (stored) return *stored;
                   return op.states ? std::vector{op.heads, *op.states} : std::vector{op.heads};
                 }),
       {"rate_shape", [&](const JsonValue& v) { stored = decode_dims(v); }},
       in.dim("heads", op.heads),
       in.optional_dim("states", op.states),
       in.optional_dim("steps", op.steps),
       {"least", [&](const JsonValue& v) { op.least = decode_number(v, in.context().numbers); }}});
  if (op.states && op.steps) in.value().refuse("a decay with \"states\" or with \"steps\"");
}

void check(const Decay& op, const Widths& widths) {
  widths.exactly(0, widths.size(op.heads) * (op.steps ? widths.positive(*op.steps) : 1));
}

std::vector<plan::OpRow> rules(const Decay& /*op*/, const RuleSite& site) {
  return site.with_weights();
}

/// Places a head's decays like its step.
Value place(const Decay& op, Walk& walk, const BoundOp& bound) {
  Value y = walk.with_weights(bound, op.steps ? walk.size(*op.steps) : 1);
  if (!op.states) return y;
  const i64 states = walk.size(*op.states);
  y.width *= states;
  for (AxisMap& map : y.features) map = index::scale(map, states);
  return y;
}

void decode(Fade& op, OpDecoder& in) {
  const Dim one = mapping::parse_dim("1");
  in.finish({in.weight("rate",
                       [&op, one] {
                         return std::vector{op.heads, one, one};
                       }),
             in.dim("heads", op.heads)});
}

std::vector<plan::OpRow> rules(const Fade& /*op*/, const RuleSite& site) {
  const auto axis = static_cast<int>(features_axis(site.bound().op->weights.front()));
  return {site.whole().front(), site.row({}, {Placement::sharded(axis)}, kCut)};
}

/// Gives each device the numbers of its heads.
Value place(const Fade& op, Walk& walk, const BoundOp& bound) {
  Value y = walk.as_value(bound, 0);
  y.name.clear();
  y.width = walk.size(op.heads);
  return y;
}

void decode(Recurrence& op, OpDecoder& in) {
  using Rule = kernels::RecurrenceRule;
  in.finish({{"rule",
              [&op](const JsonValue& v) {
                op.rule = v.one_of<Rule>({{"add", Rule::kAdd}, {"delta", Rule::kDelta}});
              },
              true},
             in.weight(
                 "skip", [&op] { return std::vector{op.heads}; }, false),
             in.dim("heads", op.heads),
             in.dim("key_heads", op.key_heads),
             in.dim("key_dim", op.key_dim),
             in.dim("value_dim", op.value_dim),
             in.optional_dim("scale_of", op.scale_of),
             in.optional_dim("decay_dim", op.decay_dim)});
}

void check(const Recurrence& op, const Widths& widths) {
  const i64 heads = widths.positive(op.heads);
  const i64 keys = widths.positive(op.key_heads) * widths.positive(op.key_dim);
  if (heads % widths.size(op.key_heads) != 0) {
    throw widths.error(
        fmt::format("{} heads cannot share {} evenly", heads, widths.size(op.key_heads)));
  }
  widths.exactly(0, keys);
  widths.exactly(1, keys);
  widths.exactly(2, heads * widths.positive(op.value_dim));
  widths.exactly(3, heads * (op.decay_dim ? widths.positive(*op.decay_dim) : 1));
  if (widths.given().size() > 4) widths.exactly(4, heads);
}

/// A head's state is where its values are. Its keys and queries are there, too, or whole.
std::vector<plan::OpRow> rules(const Recurrence& /*op*/, const RuleSite& site) {
  const std::vector<Placement> skip(site.weights(), Placement::sharded(0));
  std::vector<Placement> in(site.inputs(), kCut);
  std::vector<plan::OpRow> rows = site.whole();
  rows.push_back(site.row(in, skip, kCut));
  in[0] = in[1] = kWhole;
  rows.push_back(site.row(in, skip, kCut));
  return rows;
}

/// Places a head's state with its values. Its keys, queries and gates must be there too, or whole.
Value place(const Recurrence& op, Walk& walk, const BoundOp& bound) {
  constexpr size_t kValues = 2, kDecays = 3;
  for (size_t i = 0; i < bound.op->in.size(); ++i) walk.reduce_all(walk.in(bound, i));
  const Value& values = walk.in(bound, kValues);
  std::vector<bool> whole_values(walk.axes());
  for (size_t a = 0; a < walk.axes(); ++a) whole_values[a] = !values.on[a].is(Kind::kSharded);
  const i64 key_dim = walk.size(op.key_dim);
  const i64 value_dim = walk.size(op.value_dim);
  const i64 shared = sharing_keys(op, walk);
  const i64 decay_dim = op.decay_dim ? walk.size(*op.decay_dim) : 1;
  for (size_t i = 0; i < bound.op->in.size(); ++i) {
    if (i == kValues) continue;
    walk.gather(walk.in(bound, i), whole_values);
    const bool is_key = i < kValues;
    walk.check_covers(is_key ? walk.over_values(bound, i, key_dim, shared * value_dim)
                             : walk.over_values(bound, i, i == kDecays ? decay_dim : 1, value_dim),
                      values);
  }
  std::vector<const Value*> operands{&values};
  Value skip;
  if (!bound.weights.empty() && !bound.weights[0].empty()) {
    skip = walk.as_value(bound, 0, value_dim);
    operands.push_back(&skip);
  }
  return walk.met(operands);
}

/// Counts a token-by-token pass over the state: for each element a decay, an added product and a
/// product that is read; with the delta rule another one. Chunked kernels do more. Every sequence's
/// state is read and written in f32.
void price(const Recurrence& op, Pricing& pricing) {
  constexpr double kStateBytes = 4;
  const double state = static_cast<double>(pricing.step.work.output_elements) *
                       static_cast<double>(pricing.model.size(op.key_dim));
  const double flops = op.rule == kernels::RecurrenceRule::kDelta ? 7 : 5;
  pricing.add_flops(plan::Arithmetic::kBf16,
                    flops * static_cast<double>(pricing.phase.tokens) * state);
  pricing.sum.cache_bytes += 2 * static_cast<double>(pricing.phase.sequences) * kStateBytes * state;
}

bool is_launched(const Recurrence& /*op*/) {
  return true;
}

}  // namespace shardtool::ops
