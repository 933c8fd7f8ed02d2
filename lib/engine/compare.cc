#include "shardtool/engine/compare.h"

#include <algorithm>
#include <cmath>

#include "shardtool/engine/numbers.h"

namespace shardtool::engine {
namespace {

template <class N>
double root_mean_square(const Part<N>& part) {
  if constexpr (is_field<N>) {
    return 1;
  } else {
    double sum = 0;
    for (const N x : part.data) sum += static_cast<double>(x) * static_cast<double>(x);
    const double mean = part.data.empty() ? 0 : sum / static_cast<double>(part.data.size());
    return mean > 0 ? std::sqrt(mean) : 1;
  }
}

/// How far a is from b, in units of `scale`; residues are 0 or 1 apart.
template <class N>
double distance(N a, N b, double scale) {
  if constexpr (is_field<N>) {
    return a == b ? 0 : 1;
  } else {
    return std::abs(static_cast<double>(a) - static_cast<double>(b)) / scale;
  }
}

}  // namespace

template <class N>
Difference compare(const Part<N>& whole, const Placed<N>& parts, i64 tokens, double tolerance) {
  Difference found;
  const double scale = root_mean_square(whole);
  for (const auto& [rank, part] : parts) {
    for (i64 t = 0; t < tokens; ++t) {
      for (const index::Piece& piece : part.features.pieces()) {
        for (i64 i = 0; i < piece.size; ++i) {
          const double apart =
              distance(part.row(t)[piece.local + i], whole.row(t)[piece.global + i], scale);
          ++found.checked;
          found.has_nan = found.has_nan || std::isnan(apart);
          if (apart > found.worst) found.worst = apart;
          if (apart <= tolerance) continue;
          if (found.mismatches++ > 0) continue;
          found.rank = rank;
          found.token = t;
          found.feature = piece.global + i;
        }
      }
    }
  }
  return found;
}

template Difference compare(const Part<Field>&, const Placed<Field>&, i64, double);
template Difference compare(const Part<double>&, const Placed<double>&, i64, double);
template Difference compare(const Part<float>&, const Placed<float>&, i64, double);

}  // namespace shardtool::engine
