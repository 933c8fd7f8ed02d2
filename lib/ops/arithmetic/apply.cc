#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/ops/works.h"
#include "lib/ops/arithmetic/arithmetic.h"
#include "lib/ops/body.h"
#include "lib/ops/part_moves.h"

namespace shardtool::ops {
namespace {

using index::AxisMap;

/// Repeats every feature `times` times.
template <class N>
Part<N> repeated(const Part<N>& x, i64 times, i64 rows) {
  Part<N> y = empty_part<N>(index::scale(x.features, times), rows);
  for (i64 t = 0; t < rows; ++t) {
    for (i64 f = 0; f < y.width(); ++f) y.row(t)[f] = x.row(t)[f / times];
  }
  return y;
}

/// Returns the features of an elementwise op: as many as in the widest operand, restricted to those
/// of the operand with the fewest.
template <class N>
AxisMap common_features(const OpAt<N>& at) {
  i64 width = 0;
  for (const Part<N>* part : at.in) width = std::max(width, part->features.global_size());
  std::optional<AxisMap> best;
  for (const Part<N>* part : at.in) {
    AxisMap features = index::scale(part->features, width / part->features.global_size());
    if (!best || is_narrower(*best, features)) best = std::move(features);
  }
  return *best;
}

/// Combines the operands feature by feature. Each feature of a narrower operand is used for
/// several.
template <class N>
Part<N> elementwise(const OpAt<N>& at, bool multiplies) {
  const AxisMap features = common_features(at);
  const i64 rows = at.inputs.rows();
  Part<N> y;
  for (size_t i = 0; i < at.in.size(); ++i) {
    const Part<N>& x = *at.in[i];
    const i64 times = features.global_size() / x.features.global_size();
    const std::string& name = at.op.op->in[i];
    Part<N> operand = times == 1
                          ? aligned(at.bench, x, features, rows, name)
                          : aligned(at.bench, repeated(x, times, rows), features, rows, name);
    if (i == 0) {
      y = std::move(operand);
      continue;
    }
    N* const to = at.bench.in_out(y.data);
    at.bench.run(
        kernels::CombineAll<N>{multiplies, to, at.bench.in(operand.data), std::ssize(y.data), to});
  }
  at.bench.finish();
  return y;
}

/// Multiplies by the op's weight, which has one number for each of these runs of features.
template <class N>
void multiply_sections(const OpAt<N>& at, const std::vector<Dim>& sections, Part<N>& y) {
  const auto factors =
      load_vector(at, at.op.weights.front().front(), AxisMap::identity(std::ssize(sections)));
  i64 begin = 0;
  for (size_t i = 0; i < sections.size(); ++i) {
    const i64 end = begin + at.model.size(sections[i]);
    for (const index::Piece& piece : y.features.pieces()) {
      const i64 first = std::max(begin, piece.global);
      const i64 last = std::min(end, piece.global_end());
      for (i64 t = 0; t < at.inputs.rows(); ++t) {
        N* const row = y.row(t) + piece.local - piece.global;
        for (i64 f = first; f < last; ++f) row[f] *= factors[i];
      }
    }
    begin = end;
  }
}

/// Multiplies by the op's weight: one number, or one for each of several equal runs of features.
template <class N>
void multiply_by_stored(const OpAt<N>& at, i64 size, Part<N>& y) {
  const bool is_single = size == 1;
  const i64 shared = y.features.global_size() / size;
  const AxisMap units =
      is_single ? AxisMap::identity(1) : units_of(y.features, shared, at.op.op->in.front());
  const std::vector<N> factors = load_vector(at, at.op.weights.front().front(), units);
  for (i64 t = 0; t < at.inputs.rows(); ++t) {
    for (i64 f = 0; f < y.width(); ++f)
      y.row(t)[f] *= factors[static_cast<size_t>(is_single ? 0 : f / shared)];
  }
}

}  // namespace

template <class N>
Part<N> apply(const Multiply&, const OpAt<N>& at) {
  return elementwise(at, true);
}

template <class N>
Part<N> apply(const Add&, const OpAt<N>& at) {
  return elementwise(at, false);
}

template <class N>
Part<N> apply(const Scale& op, const OpAt<N>& at) {
  const double number = mapping::value_of(op.by, at.model.config);
  const double by = op.by_sqrt ? std::sqrt(number) : number;
  const N factor = number_of<N>(op.divides ? 1 / by : by);
  const Part<N>& x = *at.in[0];
  const std::vector<N> factors(static_cast<size_t>(x.width()), factor);
  Part<N> y = empty_part<N>(x.features, at.inputs.rows());
  at.bench.run(kernels::ScaleRows<N>{{at.bench.in(x.data), at.inputs.rows(), x.width()},
                                     x.width(),
                                     at.bench.in(factors),
                                     {at.bench.out(y.data), at.inputs.rows(), y.width()}});
  at.bench.finish();
  if (!op.sections.empty()) {
    multiply_sections(at, op.sections, y);
  } else if (op.size) {
    multiply_by_stored(at, at.model.size(*op.size), y);
  }
  return y;
}

template <class N>
Part<N> apply(const Shift& op, const OpAt<N>& at) {
  const N number = number_of<N>(mapping::value_of(op.by, at.model.config));
  const AxisMap features = features_with_weights(at);
  const i64 rows = at.inputs.rows();
  Part<N> y = aligned(*at.in[0], features, rows, at.op.op->in[0]);
  std::vector<N> added(static_cast<size_t>(y.width()), number);
  if (op.size) {
    const std::vector<N> bias = load_vector(at, at.op.weights.front().front(), features);
    for (size_t f = 0; f < added.size(); ++f) added[f] += bias[f];
  }
  for (i64 t = 0; t < rows; ++t) {
    for (i64 f = 0; f < y.width(); ++f) y.row(t)[f] += added[static_cast<size_t>(f)];
  }
  return y;
}

template <class N>
Part<N> apply(const TemperatureTuning& op, const OpAt<N>& at) {
  const double strength = mapping::value_of(op.strength, at.model.config);
  const double span = mapping::value_of(op.span, at.model.config);
  const double first = mapping::value_of(op.first, at.model.config);
  Part<N> y = *at.in[0];
  for (i64 t = 0; t < at.inputs.rows(); ++t) {
    const double spans = std::floor((static_cast<double>(t % at.inputs.length) + first) / span);
    const N factor = number_of<N>(1 + strength * std::log1p(spans));
    for (i64 f = 0; f < y.width(); ++f) y.row(t)[f] *= factor;
  }
  return y;
}

SHARDTOOL_BODY(Multiply)
SHARDTOOL_BODY(Add)
SHARDTOOL_BODY(Scale)
SHARDTOOL_BODY(Shift)
SHARDTOOL_BODY(TemperatureTuning)

}  // namespace shardtool::ops
