#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/both.h"
#include "kernels/device/team.h"
#include "kernels/field/field.h"
#include "kernels/product/product.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// Mismatch statistics of a range of elements, independent of their order. join() merges ranges.
struct Disagreement {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t mismatches = 0;
  std::uint64_t first = kNone;  ///< smallest key of a mismatch
  double worst = 0;             ///< largest distance, NaN excluded
  bool has_nan = false;

  bool operator==(const Disagreement&) const = default;

  SHARDTOOL_BOTH void add(double distance, double tolerance, std::uint64_t key) {
    if (distance > worst) worst = distance;
    has_nan = has_nan || distance != distance;
    if (distance <= tolerance) return;
    ++mismatches;
    if (key < first) first = key;
  }
  SHARDTOOL_BOTH void join(const Disagreement& other) {
    mismatches += other.mismatches;
    if (other.first < first) first = other.first;
    if (other.worst > worst) worst = other.worst;
    has_nan = has_nan || other.has_nan;
  }
};

/// a - b| / scale. For residues: 0 if equal, else 1.
template <class T>
SHARDTOOL_BOTH inline double distance(T a, T b, double scale) {
  return std::abs(static_cast<double>(a) - static_cast<double>(b)) / scale;
}
SHARDTOOL_BOTH inline double distance(Field a, Field b, double) {
  return a == b ? 0 : 1;
}

/// squares[t] = sum of the squares of the first n numbers of row t, in the order of a team.
template <class T>
struct SquareRows {
  RowView<const T> x;
  i64 n = 0;
  double* squares = nullptr;

  SHARDTOOL_BOTH i64 count() const { return x.count; }
  SHARDTOOL_BOTH int lanes() const { return lanes_for(n); }
  template <class Team>
  SHARDTOOL_BOTH void operator()(i64 t, const Team& team) const {
    const double sum = of_row(team, x.row(t), n);
    if (team.is_first()) squares[t] = sum;
  }

  template <class Team>
  SHARDTOOL_BOTH static double of_row(const Team& team, const T* row, i64 n) {
    return team.template sum<double>(n, [row](i64 k) {
      const auto number = static_cast<double>(row[k]);
      return number * number;
    });
  }
};

/// Root of a mean square, 1 for zeros only.
SHARDTOOL_BOTH inline double root_of_mean(double squares, i64 numbers) {
  const double mean = numbers == 0 ? 0 : squares / static_cast<double>(numbers);
  return mean > 0 ? std::sqrt(mean) : 1;
}

/// *root = root_of_mean of the rows' squares; one item.
struct RootMeanSquare {
  const double* squares = nullptr;
  i64 rows = 0;
  i64 numbers = 0;  ///< in all rows
  double* root = nullptr;

  SHARDTOOL_BOTH i64 count() const { return 1; }
  SHARDTOOL_BOTH int lanes() const { return lanes_for(rows); }
  template <class Team>
  SHARDTOOL_BOTH void operator()(i64, const Team& team) const {
    const auto of_row = [of = squares](i64 t) { return of[t]; };
    const double sum = team.template sum<double>(rows, of_row);
    if (team.is_first()) *root = root_of_mean(sum, numbers);
  }
};

/// The first `columns` numbers of every row of a and b. The key of column c of row t is t * stride
/// + first + c, so that column ranges of wider rows share one numbering.
template <class T>
struct CompareRows {
  RowView<const T> a, b;
  i64 columns = 0;
  const double* scale = nullptr;  ///< null: 1
  double tolerance = 0;
  i64 stride = 0;
  i64 first = 0;

  SHARDTOOL_BOTH i64 count() const { return a.count * columns; }
  SHARDTOOL_BOTH void look(i64 i, Disagreement& found) const {
    const i64 t = i / columns;
    const i64 c = i % columns;
    found.add(distance(a.row(t)[c], b.row(t)[c], scale == nullptr ? 1 : *scale), tolerance,
              static_cast<std::uint64_t>(t * stride + first + c));
  }
};

}  // namespace shardtool::kernels
