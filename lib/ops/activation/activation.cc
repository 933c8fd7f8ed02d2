#include "lib/ops/activation/activation.h"

#include "lib/ops/decoder.h"
#include "lib/ops/walk.h"

namespace shardtool::ops {

void decode(Activation& op, OpDecoder& in) {
  in.finish({in.activation("kind", op.kind)});
}

std::vector<plan::OpRow> rules(const Activation& /*op*/, const RuleSite& site) {
  return site.unary(plan::nonlinear_rows({2, 2}));
}

Value place(const Activation& /*op*/, Walk& walk, const BoundOp& bound) {
  return walk.nonlinear(bound);
}

void decode(Xielu& /*op*/, OpDecoder& in) {
  const auto number = [] { return std::vector<Dim>(); };
  in.finish({in.weight("alpha_p", number), in.weight("alpha_n", number), in.weight("beta", number),
             in.weight("eps", number)});
}

std::vector<plan::OpRow> rules(const Xielu& /*op*/, const RuleSite& site) {
  return site.unary(plan::nonlinear_rows({2, 2}));
}

Value place(const Xielu& /*op*/, Walk& walk, const BoundOp& bound) {
  return walk.nonlinear(bound);
}

void decode(Softcap& op, OpDecoder& in) {
  in.finish({in.number("cap", op.cap, true)});
}

std::vector<plan::OpRow> rules(const Softcap& /*op*/, const RuleSite& site) {
  return site.unary(plan::nonlinear_rows({2, 2}));
}

Value place(const Softcap& /*op*/, Walk& walk, const BoundOp& bound) {
  return walk.nonlinear(bound);
}

void decode(Clamp& op, OpDecoder& in) {
  in.finish({in.number("limit", op.limit, true), in.flag("from_above", op.from_above)});
}

std::vector<plan::OpRow> rules(const Clamp& /*op*/, const RuleSite& site) {
  return site.unary(plan::nonlinear_rows({2, 2}));
}

Value place(const Clamp& /*op*/, Walk& walk, const BoundOp& bound) {
  return walk.nonlinear(bound);
}

}  // namespace shardtool::ops
