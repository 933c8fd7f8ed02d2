#include <fmt/format.h>

#include "kernels/ops/activated.h"
#include "kernels/ops/sums.h"
#include "kernels/ops/works.h"
#include "lib/base/error.h"
#include "lib/ops/body.h"
#include "lib/ops/norm/norm.h"

namespace shardtool::ops {
namespace {

using index::AxisMap;

/// Returns the numbers of the device's heads from one tensor per head.
template <class N>
std::vector<N> vectors_of_heads(const OpAt<N>& at, const BoundWeight& tensors, i64 size) {
  const AxisMap heads = units_of(at.in[0]->features, size, at.op.op->in[0]);
  std::vector<N> all(static_cast<size_t>(heads.local_size() * size));
  for (const index::Piece& piece : heads.pieces()) {
    for (i64 i = 0; i < piece.size; ++i) {
      const size_t tensor = tensors[static_cast<size_t>(piece.global + i)];
      const std::vector<N> head = load_vector(at, tensor, AxisMap::identity(size));
      std::copy(head.begin(), head.end(), all.begin() + (piece.local + i) * size);
    }
  }
  return all;
}

/// Returns a norm's weight or bias: one number per feature of the device, or per feature of a head
/// if all heads share them; empty if there is none.
template <class N>
std::vector<N> norm_weight(const Norm& op, const OpAt<N>& at, size_t which) {
  if (at.op.weights.size() <= which || at.op.weights[which].empty()) return {};
  const size_t tensor = at.op.weights[which].front();
  const AxisMap& features = at.in[0]->features;
  if (!op.per_head) return load_vector(at, tensor, features);
  const i64 size = at.model.size(op.size);
  if (!op.heads) return load_vector(at, tensor, AxisMap::identity(size));
  if (at.op.op->weights[which].heads) return vectors_of_heads(at, at.op.weights[which], size);
  return load_rows(at, which, units_of(features, size, at.op.op->in[0]), size);
}

/// Returns the index of an operand's sum for every feature of the first input; -1 for padding.
template <class N>
std::vector<i64> sums_of_features(const OpAt<N>& at, size_t operand, i64 size) {
  std::vector<i64> places = positions_of(
      at.in[0]->features, index::scale(at.in[operand]->features, size), at.op.op->in[operand]);
  for (i64& place : places) place = place < 0 ? place : place / size;
  return places;
}

/// Returns y = f(x, g) feature by feature; computes g = sums(a, b) once per pair of sums.
template <class N, class OfSums, class Function>
Part<N> by_sums(const OpAt<N>& at, i64 size, const OfSums& of_sums, const Function& function) {
  const std::vector<i64> first = sums_of_features(at, 1, size);
  const std::vector<i64> second = sums_of_features(at, 2, size);
  Part<N> y = *at.in[0];
  for (i64 t = 0; t < at.inputs.rows(); ++t) {
    N made{};
    for (size_t f = 0; f < first.size(); ++f) {
      if (first[f] < 0) continue;
      const bool is_new = f == 0 || first[f] != first[f - 1];
      if (is_new) made = of_sums(at.in[1]->row(t)[first[f]], at.in[2]->row(t)[second[f]]);
      y.row(t)[f] = function(y.row(t)[f], made);
    }
  }
  return y;
}

/// Returns the layer's share from config.json, in the list at the first path that exists.
double share_of_layer(const std::vector<std::string>& paths, const mapping::ModelConfig& config,
                      i64 layer) {
  const double share = mapping::value_of(mapping::of_layer({paths, -1}, layer), config);
  if (share > 0 && share < 1) return share;
  throw Error(ErrorCode::kConfig,
              fmt::format("{} has no share of sparsity for layer {}", config.file(), layer))
      .note("expected", fmt::format("a number between 0 and 1 at {}[{}]", paths.back(), layer));
}

}  // namespace

template <class N>
Part<N> apply(const Norm& op, const OpAt<N>& at) {
  const ModelSizes& model = at.model;
  const kernels::NormSpec spec{op.kind, mapping::value_of(op.eps, model.config),
                               op.one_plus_weight};
  const Part<N>& x = *at.in[0];
  const i64 size = model.size(op.size);
  const auto weight = norm_weight(op, at, 0);
  const auto bias = norm_weight(op, at, 1);
  Part<N> y = empty_part<N>(x.features, at.inputs.rows());
  const i64 n = op.per_head ? size : x.features.local_size();
  const i64 rows = at.inputs.rows();
  const i64 heads = n == 0 ? 0 : x.width() / n;
  const auto stride = [n](const std::vector<N>& all) { return std::ssize(all) > n ? n : 0; };
  at.bench.run(kernels::NormRows<N>{spec,
                                    {at.bench.in(x.data), rows, x.width()},
                                    n,
                                    weight.empty() ? nullptr : at.bench.in(weight),
                                    bias.empty() ? nullptr : at.bench.in(bias),
                                    {at.bench.zeros(y.data), rows, y.width()},
                                    heads,
                                    stride(weight),
                                    stride(bias)});
  at.bench.finish();
  return y;
}

/// Computes the device's part of every sum; a summand if a sum spans devices.
template <class N>
Part<N> apply(const Sums& op, const OpAt<N>& at) {
  const i64 size = at.model.size(op.size);
  const Part<N>& x = *at.in[0];
  const AxisMap units = at.is_summed ? AxisMap::identity(x.features.global_size() / size)
                                     : units_of(x.features, size, at.op.op->in[0]);
  Part<N> y = empty_part<N>(units, at.inputs.rows());
  const AxisMap place = index::inverse(units);
  for (i64 t = 0; t < at.inputs.rows(); ++t) {
    for (const index::Piece& piece : x.features.pieces()) {
      for (i64 i = 0; i < piece.size; ++i) {
        const N number = x.row(t)[piece.local + i];
        N& sum = y.row(t)[place((piece.global + i) / size).value()];
        sum += op.squared ? number * number : number;
      }
    }
  }
  return y;
}

template <class N>
Part<N> apply(const Normalise& op, const OpAt<N>& at) {
  const ModelSizes& model = at.model;
  const i64 size = model.size(op.size);
  const kernels::NormSpec spec{kernels::NormKind::kRms, mapping::value_of(op.eps, model.config)};
  const AxisMap features = features_with_weights(at);
  const std::vector<N> weight = load_vector(at, at.op.weights[0].front(), features);
  const std::vector<i64> squares =
      positions_of(features, index::scale(at.in[1]->features, size), at.op.op->in[1]);
  Part<N> y = aligned(*at.in[0], features, at.inputs.rows(), at.op.op->in[0]);
  for (i64 t = 0; t < at.inputs.rows(); ++t) {
    for (size_t f = 0; f < squares.size(); ++f) {
      if (squares[f] < 0) continue;
      const N factor = kernels::norm_factor(spec, at.in[1]->row(t)[squares[f] / size], size);
      y.row(t)[f] *= factor * weight[f];
    }
  }
  return y;
}

template <class N>
Part<N> apply(const Resize& op, const OpAt<N>& at) {
  const i64 size = at.model.size(op.size);
  const double least = mapping::value_of(op.least, at.model.config);
  return by_sums(
      at, size, [&](N own, N other) { return kernels::resize_factor(own, other, size, least); },
      [](N x, N factor) { return x * factor; });
}

template <class N>
Part<N> apply(const GaussianTopK& op, const OpAt<N>& at) {
  const i64 size = at.model.size(op.size);
  const double share = share_of_layer(op.shares, at.model.config, at.layer);
  const N quantile = number_of<N>(kernels::normal_quantile(share));
  return by_sums(
      at, size, [&](N sum, N squares) { return kernels::cutoff_of(sum, squares, size, quantile); },
      [](N x, N cut) { return activated(kernels::ActivationKind::kRelu, x - cut); });
}

SHARDTOOL_BODY(Norm)
SHARDTOOL_BODY(Sums)
SHARDTOOL_BODY(Normalise)
SHARDTOOL_BODY(Resize)
SHARDTOOL_BODY(GaussianTopK)

}  // namespace shardtool::ops
