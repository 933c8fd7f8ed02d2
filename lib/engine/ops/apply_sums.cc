#include <fmt/format.h>

#include "kernels/ops/activated.h"
#include "kernels/ops/balance.h"
#include "kernels/ops/sums.h"
#include "lib/base/error.h"
#include "lib/engine/ops/apply.h"
#include "lib/engine/run/numbers.h"
#include "lib/index/section.h"

// Sums over features and over streams, and what is made of them.
namespace shardtool::engine {
namespace {

using index::AxisMap;

/// Where the sums of an operand are for every feature of the first one; -1 for padding.
template <class N>
std::vector<i64> sums_of_features(const OpAt<N>& at, size_t operand, i64 size) {
  std::vector<i64> places = positions_of(
      at.in[0]->features, index::scale(at.in[operand]->features, size), at.op.op->in[operand]);
  for (i64& place : places) place = place < 0 ? place : place / size;
  return places;
}

/// y = f(x, g) feature by feature, where g = sums(a, b) is made once for each pair of sums that
/// follow each other.
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

/// What config.json says of the layer, in the list at the first of the paths that it has.
double share_of_layer(const std::vector<std::string>& paths, const mapping::ModelConfig& config,
                      i64 layer) {
  const double share = mapping::value_of(mapping::of_layer({paths, -1}, layer), config);
  if (share > 0 && share < 1) return share;
  throw Error(ErrorCode::kConfig,
              fmt::format("{} says no share that is cut off in layer {}", config.file(), layer))
      .note("expected", fmt::format("a number between 0 and 1 at {}[{}]", paths.back(), layer));
}

}  // namespace

/// What the device has of every sum: a part of it where devices add theirs up.
template <class N>
Part<N> apply(const model::Sums& op, const OpAt<N>& at) {
  const i64 size = at.side.model->size(op.size);
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
Part<N> apply(const model::Resize& op, const OpAt<N>& at) {
  const i64 size = at.side.model->size(op.size);
  const double least = mapping::value_of(op.least, at.side.model->config);
  return by_sums(
      at, size, [&](N own, N other) { return kernels::resize_factor(own, other, size, least); },
      [](N x, N factor) { return x * factor; });
}

template <class N>
Part<N> apply(const model::Cutoff& op, const OpAt<N>& at) {
  const i64 size = at.side.model->size(op.size);
  const double share = share_of_layer(op.shares, at.side.model->config, at.layer);
  const N quantile = number_of<N>(kernels::normal_quantile(share));
  return by_sums(
      at, size, [&](N sum, N squares) { return kernels::cutoff_of(sum, squares, size, quantile); },
      [](N x, N cut) { return activated(kernels::ActivationKind::kRelu, x - cut); });
}

template <class N>
Part<N> apply(const model::Mix& op, const OpAt<N>& at) {
  const i64 size = at.side.model->size(op.size);
  const i64 from = at.side.model->size(op.from), to = at.side.model->size(op.to);
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
Part<N> apply(const model::Balance& op, const OpAt<N>& at) {
  const i64 size = at.side.model->size(op.size);
  const auto rounds = static_cast<i64>(mapping::value_of(op.rounds, at.side.model->config));
  const N eps = number_of<N>(mapping::value_of(op.eps, at.side.model->config));
  Part<N> y = aligned(*at.in[0], AxisMap::identity(size * size), at.inputs.rows(), at.op.op->in[0]);
  for (i64 t = 0; t < at.inputs.rows(); ++t) kernels::balance(y.row(t), size, rounds, eps);
  return y;
}

template <class N>
Part<N> apply(const model::OfLayer& op, const OpAt<N>& at) {
  const i64 size = at.side.model->size(op.size);
  std::vector<i64> sizes{at.layer * size, size};
  if (at.layer == 0) sizes.erase(sizes.begin());
  const Part<N>& x = *at.in[0];
  const Section section =
      sections_of(model::Split::Order::kConcat, x.features, sizes, at.op.op->in[0]).back();
  Part<N> y = empty_part<N>(section.features, at.inputs.rows());
  for (i64 t = 0; t < at.inputs.rows(); ++t) {
    for (size_t i = 0; i < section.from.size(); ++i) y.row(t)[i] = x.row(t)[section.from[i]];
  }
  return y;
}

#define SHARDTOOL_INSTANTIATE(N)                                 \
  template Part<N> apply(const model::Sums&, const OpAt<N>&);    \
  template Part<N> apply(const model::Resize&, const OpAt<N>&);  \
  template Part<N> apply(const model::Cutoff&, const OpAt<N>&);  \
  template Part<N> apply(const model::Mix&, const OpAt<N>&);     \
  template Part<N> apply(const model::Balance&, const OpAt<N>&); \
  template Part<N> apply(const model::OfLayer&, const OpAt<N>&);
SHARDTOOL_INSTANTIATE(Field)
SHARDTOOL_INSTANTIATE(double)
SHARDTOOL_INSTANTIATE(float)
#undef SHARDTOOL_INSTANTIATE

}  // namespace shardtool::engine
