#include "kernels/ops/works.h"
#include "kernels/ops/xielu.h"
#include "lib/ops/activation/activation.h"
#include "lib/ops/body.h"

namespace shardtool::ops {

template <class N>
Part<N> apply(const Activation& op, const OpAt<N>& at) {
  const auto kind = activation_of(op.kind, at.model.config);
  const Part<N>& x = *at.in[0];
  Part<N> y = empty_part<N>(x.features, at.inputs.rows());
  at.bench.run(kernels::ActivateAll<N>{kind, at.bench.in(x.data), nullptr, std::ssize(x.data),
                                       at.bench.out(y.data)});
  at.bench.finish();
  return y;
}

template <class N>
Part<N> apply(const Xielu&, const OpAt<N>& at) {
  const auto number = [&at](size_t which) {
    return load_small<N>(at.weights, at.inputs.map, at.op.weights[which].front(), at.rank).data[0];
  };
  const kernels::XieluSpec<N> spec{number(0), number(1), number(2), number(3)};
  return each(at, [&spec](N x) { return kernels::xielu(spec, x); });
}

template <class N>
Part<N> apply(const Softcap& op, const OpAt<N>& at) {
  const double cap = mapping::value_of(op.cap, at.model.config);
  if (cap == 0) return *at.in[0];
  return each(at, [cap](N x) { return capped(cap, x); });
}

template <class N>
Part<N> apply(const Clamp& op, const OpAt<N>& at) {
  const double limit = mapping::value_of(op.limit, at.model.config);
  if (limit == 0) return *at.in[0];
  if (op.from_above) return each(at, [limit](N x) { return at_most(limit, x); });
  return each(at, [limit](N x) { return limited(limit, x); });
}

SHARDTOOL_BODY(Activation)
SHARDTOOL_BODY(Xielu)
SHARDTOOL_BODY(Softcap)
SHARDTOOL_BODY(Clamp)

}  // namespace shardtool::ops
