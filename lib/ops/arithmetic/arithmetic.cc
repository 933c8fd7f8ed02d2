#include "lib/ops/arithmetic/arithmetic.h"

#include "lib/ops/decoder.h"
#include "lib/ops/walk.h"
#include "lib/ops/widths.h"

namespace shardtool::ops {
namespace {

/// Shape whose features are cut with the other operand's; one feature is whole.
Shape operand_shape(const RuleSite& site, size_t input) {
  return {2, site.width(input) > 1 ? 2 : 1};
}

/// The value as it is: the op is linear and works on single features.
std::vector<plan::OpRow> linear(const RuleSite& site) {
  return site.unary(plan::linear_rows({2, 2}));
}

}  // namespace

void decode(Multiply& /*op*/, OpDecoder& in) {
  in.finish({});
}

void check(const Multiply& /*op*/, const Widths& widths) {
  widths.meet();
}

/// Partial times whole stays Partial, because a factor can be moved into the sum.
std::vector<plan::OpRow> rules(const Multiply& /*op*/, const RuleSite& site) {
  auto rows = plan::mul_rows(operand_shape(site, 0), operand_shape(site, 1));
  rows.push_back({{kSum, kWhole}, kSum});
  rows.push_back({{kWhole, kSum}, kSum});
  return rows;
}

Value place(const Multiply& /*op*/, Walk& walk, const BoundOp& bound) {
  walk.meet(bound);
  return walk.elementwise(bound);
}

void decode(Add& /*op*/, OpDecoder& in) {
  in.finish({});
}

void check(const Add& /*op*/, const Widths& widths) {
  widths.meet();
}

std::vector<plan::OpRow> rules(const Add& /*op*/, const RuleSite& site) {
  return plan::add_rows(operand_shape(site, 0), operand_shape(site, 1));
}

Value place(const Add& /*op*/, Walk& walk, const BoundOp& bound) {
  walk.meet(bound);
  return walk.elementwise(bound);
}

void decode(Scale& op, OpDecoder& in) {
  in.finish({in.weight(
                 "weight", [&op] { return std::vector{op.size.value_or(Dim{})}; }, false),
             in.optional_dim("size", op.size),
             {"sections", [&op](const JsonValue& v) { op.sections = decode_dims(v); }},
             in.number("by", op.by),
             in.flag("by_sqrt", op.by_sqrt),
             in.flag("divides", op.divides)});
  if (!op.sections.empty() && !op.size)
    in.value().refuse("an op with \"size\" where it has sections");
  if (op.size.has_value() != !in.op().weights.empty()) {
    in.value().refuse("an op with \"size\" where there is a \"weight\", and only there");
  }
  if (!in.value().has("by") && in.op().weights.empty())
    in.value().refuse("an op with \"by\" or \"weight\"");
}

std::vector<plan::OpRow> rules(const Scale& /*op*/, const RuleSite& site) {
  return linear(site);
}

Value place(const Scale& /*op*/, Walk& walk, const BoundOp& bound) {
  return walk.in(bound, 0);
}

void decode(Shift& op, OpDecoder& in) {
  in.finish({in.weight(
                 "bias", [&op] { return std::vector{op.size.value_or(Dim{})}; }, false),
             in.optional_dim("size", op.size), in.number("by", op.by)});
  if (op.size.has_value() != !in.op().weights.empty()) {
    in.value().refuse("an op with \"size\" where there is a \"bias\", and only there");
  }
  if (!in.value().has("by") && in.op().weights.empty())
    in.value().refuse("an op with \"by\" or \"bias\"");
}

std::vector<plan::OpRow> rules(const Shift& /*op*/, const RuleSite& site) {
  return site.with_weights();
}

Value place(const Shift& /*op*/, Walk& walk, const BoundOp& bound) {
  return walk.with_weights(bound);
}

void decode(TemperatureTuning& op, OpDecoder& in) {
  in.finish({in.number("strength", op.strength, true), in.number("span", op.span, true),
             in.number("first", op.first)});
}

std::vector<plan::OpRow> rules(const TemperatureTuning& /*op*/, const RuleSite& site) {
  return linear(site);
}

Value place(const TemperatureTuning& /*op*/, Walk& walk, const BoundOp& bound) {
  return walk.in(bound, 0);
}

}  // namespace shardtool::ops
