#include "lib/engine/diagnosis/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/compare/compare.h"
#include "lib/base/error.h"
#include "lib/engine/names.h"

namespace shardtool::engine {
namespace {

/// Mean square over all numbers of some parts; its root is 1 for zeros only, and for residues.
template <class N>
class MeanSquare {
 public:
  void add(const Part<N>& part) {
    if constexpr (!is_field<N>) {
      const i64 width = part.width();
      const i64 rows = width == 0 ? 0 : std::ssize(part.data) / width;
      const kernels::HostTeam of_row(kernels::lanes_for(width)), of_rows(kernels::lanes_for(rows));
      sum_ += of_rows.sum<double>(
          rows, [&](i64 t) { return kernels::SquareRows<N>::of_row(of_row, part.row(t), width); });
      count_ += std::ssize(part.data);
    }
  }
  double root() const { return kernels::root_of_mean(sum_, count_); }

 private:
  double sum_ = 0;
  i64 count_ = 0;
};

template <class N>
bool has_same_bits(const N& a, const N& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

/// Compares every feature of a device's part: `look(t, local, global)` returns the distance from
/// the expected value and if it is a mismatch.
struct Look {
  double apart = 0;
  bool is_mismatch = false;
};
template <class N, class Function>
void look_at(i64 rank, const Part<N>& part, i64 tokens, const Function& look,
             ValueDifference& found) {
  for (i64 t = 0; t < tokens; ++t) {
    for (const index::Piece& piece : part.features.pieces()) {
      for (i64 i = 0; i < piece.size; ++i) {
        const Look seen = look(t, piece.local + i, piece.global + i);
        ++found.checked;
        found.has_nan = found.has_nan || std::isnan(seen.apart);
        if (seen.apart > found.worst) found.worst = seen.apart;
        if (!seen.is_mismatch || found.mismatches++ > 0) continue;
        found.rank = rank;
        found.token = t;
        found.feature = piece.global + i;
      }
    }
  }
}

}  // namespace

template <class N>
ValueDifference compare(const Part<N>& whole, const Placed<N>& parts, i64 tokens,
                        double tolerance) {
  ValueDifference found;
  MeanSquare<N> square;
  square.add(whole);
  const double scale = square.root();
  for (const auto& [rank, part] : parts) {
    const auto look = [&](i64 t, i64 local, i64 global) {
      const double apart = kernels::distance(part.row(t)[local], whole.row(t)[global], scale);
      return Look{apart, !(apart <= tolerance)};
    };
    look_at(rank, part, tokens, look, found);
  }
  return found;
}

/// Queues the root mean square of the whole value, for a scale on the accelerator; null: 1.
template <class N>
const double* queue_scale(kernels::Workbench& bench, const Part<N>& whole, i64 tokens) {
  if constexpr (is_field<N>) {
    return nullptr;
  } else {
    auto* const squares = bench.template room<double>(static_cast<size_t>(tokens));
    auto* const root = bench.template room<double>(1);
    bench.run(kernels::SquareRows<N>{
        {bench.in(whole.data), tokens, whole.width()}, whole.width(), squares});
    bench.run(kernels::RootMeanSquare{squares, tokens, tokens * whole.width(), root});
    return root;
  }
}

template <class N>
PendingComparison<N>::PendingComparison(kernels::Workbench& bench, const Part<N>& whole,
                                        const Placed<N>& parts, i64 tokens, double tolerance)
    : tokens_(tokens), found_(parts.size()) {
  const double* const scale = queue_scale(bench, whole, tokens);
  const N* const expected = bench.in(whole.data);
  kernels::Disagreement* found = bench.in_out(found_);
  for (const auto& [rank, part] : parts) {
    const N* const own = bench.in(part.data);
    for (const index::Piece& piece : part.features.pieces()) {
      bench.accelerator()->run(
          kernels::Comparison<N>{{{own + piece.local, tokens, part.width()},
                                  {expected + piece.global, tokens, whole.width()},
                                  piece.size,
                                  scale,
                                  tolerance,
                                  part.width(),
                                  piece.local},
                                 found});
    }
    parts_.emplace_back(rank, part.features);
    ++found;
  }
  bench.finish();
}

template <class N>
ValueDifference PendingComparison<N>::result() const {
  ValueDifference all;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const auto& [rank, features] = parts_[i];
    const kernels::Disagreement& found = found_[i];
    all.checked += tokens_ * features.image_size();
    all.worst = std::max(all.worst, found.worst);
    all.has_nan = all.has_nan || found.has_nan;
    if (found.mismatches > 0 && all.mismatches == 0) {
      const auto first = static_cast<i64>(found.first);
      all.rank = rank;
      all.token = first / features.local_size();
      all.feature = features(first % features.local_size()).value();
    }
    all.mismatches += static_cast<i64>(found.mismatches);
  }
  return all;
}

template <class N>
ValueDifference compare_bits(const Placed<N>& expected, const Placed<N>& parts, i64 tokens) {
  ValueDifference found;
  MeanSquare<N> square;
  for (const auto& [rank, part] : expected) square.add(part);
  const double scale = square.root();
  for (const auto& [rank, part] : parts) {
    const auto other = expected.find(rank);
    if (other == expected.end()) {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("rank {} makes a value that is not expected of it", rank));
    }
    const Part<N> same = aligned(other->second, part.features, tokens, "the expected value");
    const auto look = [&](i64 t, i64 local, i64) {
      const N& a = part.row(t)[local];
      const N& b = same.row(t)[local];
      return Look{kernels::distance(a, b, scale), !has_same_bits(a, b)};
    };
    look_at(rank, part, tokens, look, found);
  }
  return found;
}

#define SHARDTOOL_INSTANTIATE(N)                                                   \
  template class PendingComparison<N>;                                             \
  template ValueDifference compare(const Part<N>&, const Placed<N>&, i64, double); \
  template ValueDifference compare_bits(const Placed<N>&, const Placed<N>&, i64);
SHARDTOOL_INSTANTIATE(Field)
SHARDTOOL_INSTANTIATE(double)
SHARDTOOL_INSTANTIATE(float)
#undef SHARDTOOL_INSTANTIATE

}  // namespace shardtool::engine
