#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/both.h"
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

/// The first `columns` numbers of every row of a and b. The key of column c of row t is t * stride
/// + first + c, so that column ranges of wider rows share one numbering.
template <class T>
struct CompareRows {
  RowView<const T> a, b;
  i64 columns = 0;
  double scale = 1;
  double tolerance = 0;
  i64 stride = 0;
  i64 first = 0;

  SHARDTOOL_BOTH i64 count() const { return a.count * columns; }
  SHARDTOOL_BOTH void look(i64 i, Disagreement& found) const {
    const i64 t = i / columns;
    const i64 c = i % columns;
    found.add(distance(a.row(t)[c], b.row(t)[c], scale), tolerance,
              static_cast<std::uint64_t>(t * stride + first + c));
  }
};

}  // namespace shardtool::kernels
