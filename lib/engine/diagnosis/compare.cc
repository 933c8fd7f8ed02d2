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
      for (const N x : part.data) sum_ += static_cast<double>(x) * static_cast<double>(x);
      count_ += part.data.size();
    }
  }
  double root() const {
    const double mean = count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
    return mean > 0 ? std::sqrt(mean) : 1;
  }

 private:
  double sum_ = 0;
  size_t count_ = 0;
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
  template ValueDifference compare(const Part<N>&, const Placed<N>&, i64, double); \
  template ValueDifference compare_bits(const Placed<N>&, const Placed<N>&, i64);
SHARDTOOL_INSTANTIATE(Field)
SHARDTOOL_INSTANTIATE(double)
SHARDTOOL_INSTANTIATE(float)
#undef SHARDTOOL_INSTANTIATE

}  // namespace shardtool::engine
