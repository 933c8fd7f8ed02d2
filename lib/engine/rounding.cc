#include "shardtool/engine/rounding.h"

#include <algorithm>
#include <cmath>

namespace shardtool::engine {
namespace {

/// Sums of squares over all devices' parts.
struct Squares {
  double exact = 0;
  double whole = 0;   ///< of what the whole model is off by
  double shards = 0;  ///< of what the devices are off by
};

Squares squares_of(const Tier<double>& exact, const Tier<float>& native) {
  Squares sums;
  for (const auto& [rank, part] : native.shards_result()) {
    for (i64 t = 0; t < native.rows(); ++t) {
      for (const index::Piece& piece : part.features.pieces()) {
        for (i64 i = 0; i < piece.size; ++i) {
          const double r = exact.whole_result().row(t)[piece.global + i];
          sums.exact += r * r;
          sums.whole += std::pow(native.whole_result().row(t)[piece.global + i] - r, 2);
          sums.shards += std::pow(part.row(t)[piece.local + i] - r, 2);
        }
      }
    }
  }
  return sums;
}

}  // namespace

void judge_rounding(const Tier<double>& exact, Tier<float>& native) {
  const Squares sums = squares_of(exact, native);
  TierVerdict& verdict = native.verdict();
  if (sums.whole > 0) {
    verdict.worst = std::max(verdict.worst, std::sqrt(sums.shards / sums.whole));
  }
  if (sums.exact > 0) {
    verdict.rounding = std::max(verdict.rounding, std::sqrt(sums.whole / sums.exact));
  }
  Part<float> x = native.whole_result();
  for (size_t i = 0; i < x.data.size(); ++i) {
    x.data[i] = static_cast<float>(exact.whole_result().data[i]);
  }
  native.carry(std::move(x));
}

}  // namespace shardtool::engine
