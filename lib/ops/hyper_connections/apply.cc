#include "kernels/ops/balance.h"
#include "kernels/ops/sums.h"
#include "lib/ops/body.h"
#include "lib/ops/hyper_connections/hyper_connections.h"

namespace shardtool::ops {

using index::AxisMap;

template <class N>
Part<N> apply(const HyperConnection& op, const OpAt<N>& at) {
  const i64 size = at.model.size(op.size);
  const i64 from = at.model.size(op.from), to = at.model.size(op.to);
  const Part<N> x =
      aligned(*at.in[0], AxisMap::identity(from * size), at.inputs.rows(), at.op.op->in[0]);
  const Part<N> factors =
      aligned(*at.in[1], AxisMap::identity(from * to), at.inputs.rows(), at.op.op->in[1]);
  Part<N> y = empty_part<N>(AxisMap::identity(to * size), at.inputs.rows());
  for (i64 t = 0; t < at.inputs.rows(); ++t) {
    for (i64 i = 0; i < y.width(); ++i) {
      const i64 stream = i / size;
      const N* const of_stream = factors.row(t) + (op.by_source ? stream : stream * from);
      y.row(t)[i] =
          kernels::mixed(x.row(t) + i % size, size, of_stream, from, op.by_source ? to : 1);
    }
  }
  return y;
}

template <class N>
Part<N> apply(const Sinkhorn& op, const OpAt<N>& at) {
  const i64 size = at.model.size(op.size);
  const auto rounds = static_cast<i64>(mapping::value_of(op.rounds, at.model.config));
  const N eps = number_of<N>(mapping::value_of(op.eps, at.model.config));
  Part<N> y = aligned(*at.in[0], AxisMap::identity(size * size), at.inputs.rows(), at.op.op->in[0]);
  for (i64 t = 0; t < at.inputs.rows(); ++t) kernels::balance(y.row(t), size, rounds, eps);
  return y;
}

SHARDTOOL_BODY(HyperConnection)
SHARDTOOL_BODY(Sinkhorn)

}  // namespace shardtool::ops
