#include "lib/ops/hyper_connections/hyper_connections.h"

#include "lib/ops/decoder.h"
#include "lib/ops/walk.h"
#include "lib/ops/widths.h"

namespace shardtool::ops {

void decode(HyperConnection& op, OpDecoder& in) {
  in.finish({in.dim("size", op.size), in.dim("from", op.from), in.dim("to", op.to),
             in.flag("by_source", op.by_source)});
}

void check(const HyperConnection& op, const Widths& widths) {
  widths.exactly(0, widths.size(op.from) * widths.size(op.size));
  widths.exactly(1, widths.size(op.from) * widths.size(op.to));
}

std::vector<plan::OpRow> rules(const HyperConnection& /*op*/, const RuleSite& site) {
  return site.by_tokens();
}

/// Every device has whole streams, like the inputs of layers.
Value place(const HyperConnection& op, Walk& walk, const BoundOp& bound) {
  for (size_t i = 0; i < bound.op->in.size(); ++i) walk.make_whole(walk.in(bound, i));
  return walk.whole(walk.size(op.to) * walk.size(op.size));
}

void decode(Sinkhorn& op, OpDecoder& in) {
  in.finish({in.dim("size", op.size), in.number("rounds", op.rounds, true),
             in.number("eps", op.eps, true)});
}

void check(const Sinkhorn& op, const Widths& widths) {
  widths.exactly(0, widths.size(op.size) * widths.size(op.size));
}

std::vector<plan::OpRow> rules(const Sinkhorn& /*op*/, const RuleSite& site) {
  return site.by_tokens();
}

Value place(const Sinkhorn& /*op*/, Walk& walk, const BoundOp& bound) {
  walk.make_whole(walk.in(bound, 0));
  return walk.in(bound, 0);
}

}  // namespace shardtool::ops
