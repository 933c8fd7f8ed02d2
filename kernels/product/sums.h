#pragma once

#include <cstdint>

#include "kernels/both.h"
#include "kernels/decode/element.h"
#include "kernels/product/product.h"

/// The products of product.h as independent pieces, for code that runs on host and GPU. On a GPU
/// the bytes of a matrix must be aligned to its elements.
namespace shardtool::kernels {

/// Sum of w x with w < 2^16. x is split into two parts, so that kMost products fit before a fold.
struct NarrowSum {
  static constexpr i64 kMost = i64{1} << 16;
  static constexpr int kLowBits = 31;
  std::uint64_t low = 0, high = 0;

  SHARDTOOL_BOTH void add(Field w, Field x) {
    low += w.v * (x.v & ((std::uint64_t{1} << kLowBits) - 1));
    high += w.v * (x.v >> kLowBits);
  }
  SHARDTOOL_BOTH Field value() const { return fold(Wide{low} + (Wide{high} << kLowBits)); }
};

/// Sum of w x for any residues; a product has 122 bits.
struct WideSum {
  static constexpr i64 kMost = 32;
  Wide sum = 0;

  SHARDTOOL_BOTH void add(Field w, Field x) { sum += static_cast<Wide>(w.v) * x.v; }
  SHARDTOOL_BOTH Field value() const { return fold(sum); }
};

/// Weights of a matrix as residues; width is bits(w.dtype) / 8, a table that GPU code cannot read.
struct ResidueMatrix {
  StoredMatrix w;
  i64 width = 2;
  NumberMap map = NumberMap::kBits;

  /// True if weights have at most 16 bits.
  SHARDTOOL_BOTH bool is_narrow() const { return map == NumberMap::kBits && width <= 2; }
  SHARDTOOL_BOTH Field at(i64 i) const { return residue_at(w.dtype, width, map, w.bytes, i); }
};

/// multiply_rows of residues, split so that `lanes` threads share a row of w and kTokens rows of x.
/// The products are the sums over lanes 0, 1, ...
template <int kTokens>
struct ResidueRows {
  ResidueMatrix matrix;
  RowView<const Field> x;

  /// Adds to sums[j] this lane's part of row r of w times row t + j of x. For rows past the end the
  /// added value is undefined.
  SHARDTOOL_BOTH void add_lane(i64 r, i64 t, int lane, int lanes, Field* sums) const {
    if (matrix.is_narrow()) return add_lane_of<NarrowSum>(r, t, lane, lanes, sums);
    add_lane_of<WideSum>(r, t, lane, lanes, sums);
  }

 private:
  template <class Sum>
  SHARDTOOL_BOTH void add_lane_of(i64 r, i64 t, int lane, int lanes, Field* sums) const {
    const i64 columns = matrix.w.columns;
    const Field* rows[kTokens];
    for (int j = 0; j < kTokens; ++j) rows[j] = x.row(t + j < x.count ? t + j : x.count - 1);
    for (i64 begin = lane; begin < columns; begin += lanes * Sum::kMost) {
      const i64 most = begin + lanes * Sum::kMost;
      const i64 end = most < columns ? most : columns;
      Sum some[kTokens];
      for (i64 k = begin; k < end; k += lanes) {
        const Field weight = matrix.at(r * matrix.w.stride + k);
        for (int j = 0; j < kTokens; ++j) some[j].add(weight, rows[j][k]);
      }
      for (int j = 0; j < kTokens; ++j) sums[j] += some[j].value();
    }
  }
};

/// multiply_rows of floats: lane l of kLanes sums the columns k with k mod kLanes = l in ascending
/// order. The lanes are added as a tree: 4 apart, then 2, then 1, the same order as in loops.inc.
template <class T>
struct RealRows {
  static constexpr int kLanes = 8;
  StoredMatrix w;
  RowView<const T> x;

  SHARDTOOL_BOTH T lane(i64 r, i64 t, int lane) const {
    T sum = 0;
    for (i64 k = lane; k < w.columns; k += kLanes) {
      sum += number_at<T>(w.dtype, w.bytes, r * w.stride + k) * x.row(t)[k];
    }
    return sum;
  }
};

/// add_columns of residues as a work: one item per element of y.
struct ResidueColumns {
  ResidueMatrix matrix;
  RowView<const Field> x;
  RowView<Field> y;

  SHARDTOOL_BOTH i64 count() const { return x.count * matrix.w.columns; }
  SHARDTOOL_BOTH void operator()(i64 i) const {
    const i64 t = i / matrix.w.columns;
    const i64 c = i % matrix.w.columns;
    y.row(t)[c] += matrix.is_narrow() ? sum_of<NarrowSum>(t, c) : sum_of<WideSum>(t, c);
  }

 private:
  template <class Sum>
  SHARDTOOL_BOTH Field sum_of(i64 t, i64 c) const {
    Field sum;
    for (i64 begin = 0; begin < matrix.w.rows; begin += Sum::kMost) {
      const i64 end = begin + Sum::kMost < matrix.w.rows ? begin + Sum::kMost : matrix.w.rows;
      Sum some;
      for (i64 r = begin; r < end; ++r) {
        some.add(matrix.at(r * matrix.w.stride + c), x.row(t)[r]);
      }
      sum += some.value();
    }
    return sum;
  }
};

/// add_columns of floats as a work: rows in ascending order.
template <class T>
struct RealColumns {
  StoredMatrix w;
  RowView<const T> x;
  RowView<T> y;

  SHARDTOOL_BOTH i64 count() const { return x.count * w.columns; }
  SHARDTOOL_BOTH void operator()(i64 i) const {
    const i64 t = i / w.columns;
    const i64 c = i % w.columns;
    T sum = y.row(t)[c];
    for (i64 r = 0; r < w.rows; ++r) {
      sum += x.row(t)[r] * number_at<T>(w.dtype, w.bytes, r * w.stride + c);
    }
    y.row(t)[c] = sum;
  }
};

}  // namespace shardtool::kernels
