#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "lib/base/error.h"
#include "lib/index/axis_map.h"
#include "lib/tutorial/layers/number.h"

namespace shardtool::tutorial {

using index::Interval;

enum class Axis { kRows, kColumns };

/// A dense array. M1: values has rows * columns numbers, row-major.
template <Number T>
class Matrix {
 public:
  Matrix() = default;
  /// Fills with zeros.
  Matrix(i64 rows, i64 columns)
      : rows_(rows), columns_(columns), values_(static_cast<size_t>(rows * columns)) {}
  /// Throws kInternal unless there are rows * columns values.
  Matrix(i64 rows, i64 columns, std::vector<T> values)
      : rows_(rows), columns_(columns), values_(std::move(values)) {
    if (static_cast<i64>(values_.size()) != rows * columns) {
      throw Error(ErrorCode::kInternal, "a matrix needs rows * columns values");
    }
  }

  i64 rows() const { return rows_; }
  i64 columns() const { return columns_; }
  i64 extent(Axis axis) const { return axis == Axis::kRows ? rows_ : columns_; }
  std::span<const T> values() const { return values_; }
  std::span<T> values() { return values_; }
  std::span<const T> row(i64 r) const { return values().subspan(r * columns_, columns_); }
  std::span<T> row(i64 r) { return values().subspan(r * columns_, columns_); }
  T operator()(i64 r, i64 c) const { return values_[static_cast<size_t>(r * columns_ + c)]; }
  T& operator()(i64 r, i64 c) { return values_[static_cast<size_t>(r * columns_ + c)]; }

  bool operator==(const Matrix&) const = default;

 private:
  i64 rows_ = 0;
  i64 columns_ = 0;
  std::vector<T> values_;
};

/// Throws kShapeMismatch, "`what`: <found>, expected <expected>", unless the two are equal.
void require_extent(std::string_view what, i64 found, i64 expected);

/// a b, every element summed in the order of the inner axis, from 0. Throws kShapeMismatch.
template <Number T>
Matrix<T> times(const Matrix<T>& a, const Matrix<T>& b) {
  require_extent("rows of the right factor", b.rows(), a.columns());
  Matrix<T> product(a.rows(), b.columns());
  for (i64 r = 0; r < a.rows(); ++r) {
    const std::span<T> sums = product.row(r);
    for (i64 k = 0; k < a.columns(); ++k) {
      const T factor = a(r, k);
      const std::span<const T> row = b.row(k);
      for (size_t c = 0; c < sums.size(); ++c) sums[c] += factor * row[c];
    }
  }
  return product;
}

/// Computes a b: times(), or an accelerator's product with the same bits.
template <Number T>
using Product = std::function<Matrix<T>(const Matrix<T>& a, const Matrix<T>& b)>;

template <Number T>
Matrix<T> transposed(const Matrix<T>& a) {
  Matrix<T> result(a.columns(), a.rows());
  for (i64 r = 0; r < a.rows(); ++r) {
    for (i64 c = 0; c < a.columns(); ++c) result(c, r) = a(r, c);
  }
  return result;
}

/// a + b, element by element. Throws kShapeMismatch.
template <Number T>
Matrix<T> plus(Matrix<T> a, const Matrix<T>& b) {
  require_extent("rows of a sum", b.rows(), a.rows());
  require_extent("columns of a sum", b.columns(), a.columns());
  for (size_t i = 0; i < b.values().size(); ++i) a.values()[i] += b.values()[i];
  return a;
}

/// k a.
template <Number T>
Matrix<T> scaled(Matrix<T> a, T k) {
  for (T& value : a.values()) value = k * value;
  return a;
}

/// Sum of a's rows in order, as one row.
template <Number T>
Matrix<T> row_sum(const Matrix<T>& a) {
  Matrix<T> sum(1, a.columns());
  for (i64 r = 0; r < a.rows(); ++r) {
    for (i64 c = 0; c < a.columns(); ++c) sum(0, c) += a(r, c);
  }
  return sum;
}

/// sum of a(i) b(i) over all elements, in order. Throws kShapeMismatch.
template <Number T>
T inner_product(const Matrix<T>& a, const Matrix<T>& b) {
  require_extent("rows of an inner product", b.rows(), a.rows());
  require_extent("columns of an inner product", b.columns(), a.columns());
  T sum{};
  for (size_t i = 0; i < a.values().size(); ++i) sum += a.values()[i] * b.values()[i];
  return sum;
}

/// Rows or columns [begin, end) of a, which must exist.
template <Number T>
Matrix<T> slice(const Matrix<T>& a, Axis axis, Interval part) {
  const Interval rows = axis == Axis::kRows ? part : Interval{0, a.rows()};
  const Interval columns = axis == Axis::kColumns ? part : Interval{0, a.columns()};
  Matrix<T> result(rows.size(), columns.size());
  for (i64 r = 0; r < rows.size(); ++r) {
    const auto source = a.row(rows.begin + r).subspan(columns.begin, columns.size());
    std::copy(source.begin(), source.end(), result.row(r).begin());
  }
  return result;
}

/// Joins parts along an axis, in order. Throws kShapeMismatch if the other extents differ.
template <Number T>
Matrix<T> joined(std::span<const Matrix<T>> parts, Axis axis) {
  if (parts.empty()) return {};
  const Axis other = axis == Axis::kRows ? Axis::kColumns : Axis::kRows;
  const i64 across = parts.front().extent(other);
  i64 along = 0;
  for (const Matrix<T>& part : parts) {
    require_extent("parts that are joined", part.extent(other), across);
    along += part.extent(axis);
  }
  Matrix<T> result = axis == Axis::kRows ? Matrix<T>(along, across) : Matrix<T>(across, along);
  i64 begin = 0;
  for (const Matrix<T>& part : parts) {
    for (i64 r = 0; r < part.rows(); ++r) {
      const auto target = axis == Axis::kRows ? result.row(begin + r)
                                              : result.row(r).subspan(begin, part.columns());
      std::copy(part.row(r).begin(), part.row(r).end(), target.begin());
    }
    begin += part.extent(axis);
  }
  return result;
}

/// Random numbers of a seed.
template <Number T>
Matrix<T> random_matrix(i64 rows, i64 columns, std::uint64_t seed) {
  Matrix<T> result(rows, columns);
  for (size_t i = 0; i < result.values().size(); ++i) {
    result.values()[i] = random_number<T>(seed, i);
  }
  return result;
}

}  // namespace shardtool::tutorial
