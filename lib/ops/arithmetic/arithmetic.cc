#include "lib/ops/arithmetic/arithmetic.h"

#include "lib/ops/decoder.h"
#include "lib/ops/walk.h"
#include "lib/ops/widths.h"

namespace shardtool::ops {

using plan::Placement;

void decode(Multiply& /*op*/, OpDecoder& in) {
  in.finish({});
}

void check(const Multiply& /*op*/, const Widths& widths) {
  widths.meet();
}

/// Follows the planner's rules of mul. Partial times whole stays Partial, because a factor can be
/// moved into the sum.
Value place(const Multiply& /*op*/, Walk& walk, const BoundOp& bound) {
  static const auto kRules = [] {
    const Placement r = Placement::replicated(), p = Placement::partial();
    std::vector<plan::OpRow> rules = plan::mul_rows({2, 2}, {2, 2});
    rules.push_back({{p, r}, p});
    rules.push_back({{r, p}, p});
    return rules;
  }();
  walk.meet(kRules, bound);
  return walk.elementwise(bound);
}

void decode(Add& /*op*/, OpDecoder& in) {
  in.finish({});
}

void check(const Add& /*op*/, const Widths& widths) {
  widths.meet();
}

/// Follows the planner's rules of add.
Value place(const Add& /*op*/, Walk& walk, const BoundOp& bound) {
  static const auto kRules = plan::add_rows({2, 2}, {2, 2});
  walk.meet(kRules, bound);
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

Value place(const Shift& /*op*/, Walk& walk, const BoundOp& bound) {
  return walk.with_weights(bound);
}

void decode(TemperatureTuning& op, OpDecoder& in) {
  in.finish({in.number("strength", op.strength, true), in.number("span", op.span, true),
             in.number("first", op.first)});
}

Value place(const TemperatureTuning& /*op*/, Walk& walk, const BoundOp& bound) {
  return walk.in(bound, 0);
}

}  // namespace shardtool::ops
