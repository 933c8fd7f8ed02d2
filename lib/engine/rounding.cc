#include "lib/engine/rounding.h"

#include <algorithm>
#include <cmath>

namespace shardtool::engine {
namespace {

/// Sums of squares over all devices' parts.
struct Squares {
  double exact = 0;
  double whole = 0;   ///< errors of the whole model
  double shards = 0;  ///< errors of the devices
};

void add_squares(const Part<double>& exact, const Part<float>& whole, const Placed<float>& shards,
                 i64 rows, Squares& sums) {
  for (const auto& [rank, part] : shards) {
    for (i64 t = 0; t < rows; ++t) {
      for (const index::Piece& piece : part.features.pieces()) {
        for (i64 i = 0; i < piece.size; ++i) {
          const double r = exact.row(t)[piece.global + i];
          sums.exact += r * r;
          sums.whole += std::pow(whole.row(t)[piece.global + i] - r, 2);
          sums.shards += std::pow(part.row(t)[piece.local + i] - r, 2);
        }
      }
    }
  }
}

Part<float> rounded(const Part<double>& exact) {
  return {exact.features, {exact.data.begin(), exact.data.end()}};
}

}  // namespace

void judge_rounding(const Tier<double>& exact, Tier<float>& native) {
  Squares sums;
  for (const auto& [name, of_devices] : native.shards_results()) {
    add_squares(exact.whole_results().at(name), native.whole_results().at(name), of_devices,
                native.rows(), sums);
  }
  TierVerdict& verdict = native.verdict();
  if (sums.whole > 0) {
    verdict.worst = std::max(verdict.worst, std::sqrt(sums.shards / sums.whole));
  }
  if (sums.exact > 0) {
    verdict.rounding = std::max(verdict.rounding, std::sqrt(sums.whole / sums.exact));
  }
  for (const auto& [name, whole] : exact.whole_results()) native.carry(name, rounded(whole));
}

}  // namespace shardtool::engine
