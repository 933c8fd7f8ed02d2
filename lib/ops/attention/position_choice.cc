#include "lib/ops/attention/position_choice.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/ops/position_index.h"

namespace shardtool::ops {
namespace {

/// Returns the distance of the worst chosen score from the best other one.
template <class T>
double gap_of(const T* scores, const T* gates, i64 seen) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  double least = kInfinite;
  double most = -kInfinite;
  for (i64 p = 0; p < seen; ++p) {
    const auto score = static_cast<double>(scores[p]);
    if (gates[p] != 0) {
      least = std::min(least, score);
    } else {
      most = std::max(most, score);
    }
  }
  return least - most;
}

}  // namespace

template <class T>
void choose_positions(const PositionChoice& queries, const Choosing& choosing,
                      std::vector<T>& scores) {
  constexpr i64 kByScore = -1;
  constexpr bool replays_all = std::is_same_v<T, float>;
  const i64 top_k = queries.top_k;
  Choice made(static_cast<size_t>(queries.rows * top_k), kByScore);
  for (i64 row = 0; row < queries.rows; ++row) {
    const i64 positions = queries.causal ? row % queries.length + 1 : queries.length;
    const i64 seen = positions / queries.every;
    T* const of_row = scores.data() + row * queries.length;
    const i64* const told =
        choosing.replayed == nullptr ? nullptr : choosing.replayed->data() + row * top_k;
    if (told != nullptr && *told != kByScore) {
      std::fill_n(of_row, seen, T{0});
      for (i64 k = 0; k < top_k; ++k) of_row[told[k]] = 1;
      continue;
    }
    const std::vector<T> scored(of_row, of_row + seen);
    kernels::gate_positions(of_row, seen, top_k);
    if (seen <= top_k) continue;
    const bool is_undecidable = gap_of(scored.data(), of_row, seen) < kUndecidableGap;
    if (choosing.undecidable != nullptr && choosing.replayed == nullptr && is_undecidable) {
      ++*choosing.undecidable;
    }
    if (!is_undecidable && !replays_all) continue;
    i64* next = made.data() + row * top_k;
    for (i64 p = 0; p < seen; ++p) {
      if (of_row[p] != 0) *next++ = p;
    }
  }
  if (choosing.chosen != nullptr) *choosing.chosen = std::move(made);
}

template void choose_positions(const PositionChoice&, const Choosing&, std::vector<float>&);
template void choose_positions(const PositionChoice&, const Choosing&, std::vector<double>&);

}  // namespace shardtool::ops
