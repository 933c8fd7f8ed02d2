#include "lib/ops/inputs/inputs.h"

#include "lib/ops/decoder.h"
#include "lib/ops/pricing.h"
#include "lib/ops/walk.h"
#include "lib/ops/widths.h"

namespace shardtool::ops {

void decode(Embed& op, OpDecoder& in) {
  std::optional<std::vector<Dim>> stored;
  in.finish({in.weight("table",
                       [&] {
                         return stored.value_or(std::vector{op.rows, op.size});
                       }),
             {"table_shape", [&](const JsonValue& v) { stored = decode_dims(v); }},
             in.dim("rows", op.rows),
             in.dim("size", op.size),
             in.number("offset", op.offset),
             patches_field(in, op.patches, false),
             {"by", [&op](const JsonValue& v) {
                op.by = v.one_of<Embed::By>({{"token", Embed::By::kToken},
                                             {"position", Embed::By::kPosition},
                                             {"segment", Embed::By::kSegment},
                                             {"patch", Embed::By::kPatch}});
              }}});
  if ((op.by == Embed::By::kPatch) != in.value().has("patches")) {
    in.value().refuse("an op with \"patches\" where it is by patch, and only there");
  }
}

/// The planner's rules of a look-up that skips other devices' rows. Every device has all ids.
std::vector<plan::OpRow> rules(const Embed& /*op*/, const RuleSite& site) {
  const auto first = static_cast<int>(features_axis(site.bound().op->weights.front()));
  std::vector<plan::OpRow> rows = plan::masked_gather_rows({1, 1}, {1});
  std::erase_if(rows, [](const plan::OpRow& row) { return row.operands.front() == kSum; });
  for (plan::OpRow& row : rows) {
    row.operands.pop_back();
    plan::Placement& table = row.operands.front();
    if (table.is(plan::Placement::Kind::kSharded)) table.axis += first;
  }
  return rows;
}

Value place(const Embed& op, Walk& walk, const BoundOp& bound) {
  const layout::Layout& table = walk.layout_of(bound.weights.front());
  const size_t rows = features_axis(bound.op->weights.front());
  Value y = walk.whole(walk.size(op.size));
  y.features = walk.held(table, rows + 1);
  const auto by_rows = walk.cut_by(table, rows);
  const auto by_columns = walk.cut_by(table, rows + 1);
  walk.require_dealt_once(bound.weights.front(), rows, by_rows);
  const auto rules = walk.rules(bound);
  const auto axis = static_cast<int>(rows);
  for (size_t a = 0; a < walk.axes(); ++a) {
    const plan::Placement on = by_columns[a] ? plan::Placement::sharded(axis + 1)
                               : by_rows[a]  ? plan::Placement::sharded(axis)
                                             : kWhole;
    y.on[a] = rule_for(rules, 0, on).result;
  }
  return y;
}

/// Reads only the rows that are looked up.
void price(const Embed& /*op*/, Pricing& pricing) {
  pricing.sum.weight_bytes += static_cast<double>(pricing.tokens) *
                              static_cast<double>(pricing.step.work.output_elements) *
                              pricing.read().bits / 8;
}

bool is_launched(const Embed& /*op*/) {
  return true;
}

void decode(ExtraInput& op, OpDecoder& in) {
  in.finish({in.dim("size", op.size)});
}

std::vector<plan::OpRow> rules(const ExtraInput& /*op*/, const RuleSite& site) {
  return site.whole();
}

Value place(const ExtraInput& op, Walk& walk, const BoundOp& /*bound*/) {
  return walk.whole(walk.size(op.size));
}

void decode(Sinusoids& op, OpDecoder& in) {
  in.finish({in.dim("size", op.size), in.number("base", op.base), in.number("offset", op.offset),
             in.flag("reaches_base", op.reaches_base)});
}

std::vector<plan::OpRow> rules(const Sinusoids& /*op*/, const RuleSite& site) {
  return {site.whole().front(), site.all(kWhole, kTokens)};
}

Value place(const Sinusoids& op, Walk& walk, const BoundOp& /*bound*/) {
  return walk.whole(walk.size(op.size));
}

void decode(ConvolveFrames& op, OpDecoder& in) {
  in.finish({in.weight("weight",
                       [&op] {
                         return std::vector{op.rows, op.columns, op.taps};
                       }),
             in.weight(
                 "bias", [&op] { return std::vector{op.rows}; }, false),
             in.dim("rows", op.rows), in.dim("columns", op.columns), in.dim("taps", op.taps),
             in.dim("frames", op.frames), in.dim("stride", op.stride)});
}

void check(const ConvolveFrames& op, const Widths& widths) {
  widths.exactly(0, widths.size(op.frames) * widths.size(op.columns));
}

std::vector<plan::OpRow> rules(const ConvolveFrames& /*op*/, const RuleSite& site) {
  return site.whole();
}

/// Every device has all frames: these convolutions come before the layers and are small compared to
/// them.
Value place(const ConvolveFrames& op, Walk& walk, const BoundOp& bound) {
  walk.refuse_cut(bound, "convolution of frames");
  walk.make_whole(walk.in(bound, 0));
  return walk.whole(walk.size(op.frames) / walk.size(op.stride) * walk.size(op.rows));
}

void price(const ConvolveFrames& op, Pricing& pricing) {
  pricing.add_products(pricing.model.size(op.frames) / pricing.model.size(op.stride));
}

bool is_launched(const ConvolveFrames& /*op*/) {
  return true;
}

}  // namespace shardtool::ops
