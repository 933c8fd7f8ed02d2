#include <algorithm>
#include <cmath>
#include <optional>

#include "lib/ops/arithmetic/arithmetic.h"
#include "lib/ops/body.h"

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
template <class N, class Combine>
Part<N> elementwise(const OpAt<N>& at, const Combine& combine) {
  const AxisMap features = common_features(at);
  const i64 rows = at.inputs.rows();
  Part<N> y = empty_part<N>(features, rows);
  for (size_t i = 0; i < at.in.size(); ++i) {
    const Part<N>& x = *at.in[i];
    const i64 times = features.global_size() / x.features.global_size();
    const std::string& name = at.op.op->in[i];
    const Part<N> operand = times == 1 ? aligned(x, features, rows, name)
                                       : aligned(repeated(x, times, rows), features, rows, name);
    for (i64 t = 0; t < rows; ++t) {
      for (i64 f = 0; f < y.width(); ++f) {
        const N number = operand.row(t)[f];
        y.row(t)[f] = i == 0 ? number : combine(y.row(t)[f], number);
      }
    }
  }
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
  return elementwise(at, [](N a, N b) { return a * b; });
}

template <class N>
Part<N> apply(const Add&, const OpAt<N>& at) {
  return elementwise(at, [](N a, N b) { return a + b; });
}

template <class N>
Part<N> apply(const Scale& op, const OpAt<N>& at) {
  const double number = mapping::value_of(op.by, at.model.config);
  const double by = op.by_sqrt ? std::sqrt(number) : number;
  const N factor = number_of<N>(op.divides ? 1 / by : by);
  Part<N> y = each(at, [factor](N x) { return x * factor; });
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
