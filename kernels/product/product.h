#pragma once

#include <cstddef>
#include <span>

#include "kernels/both.h"
#include "kernels/decode/decode.h"
#include "kernels/field/field.h"
#include "lib/base/checked.h"
#include "lib/base/dtype.h"

namespace shardtool::kernels {

/// A row-major matrix as it is stored, or some columns of one. Requires is_computable(dtype).
struct StoredMatrix {
  Dtype dtype = Dtype::kBF16;
  const std::byte* bytes = nullptr;
  i64 rows = 0;
  i64 columns = 0;
  i64 stride = columns;  ///< elements from a row to the next

  const std::byte* at(i64 r, i64 c) const { return bytes + (r * stride + c) * (bits(dtype) / 8); }
};

/// Rows of numbers beside each other: row t begins at data + t * stride.
template <class T>
struct RowView {
  T* data = nullptr;
  i64 count = 0;
  i64 stride = 0;

  SHARDTOOL_BOTH T* row(i64 t) const { return data + t * stride; }
};

/// y[t][r] = sum over k of w[r][k] x[t][k], for every row t of x: w as nn.Linear stores it.
/// Residues exactly; double and float in an order of their own that depends on the number of
/// columns alone, so that any rows of w, and any rows of x, give the same bits alone or together.
/// Every CPU gives the same bits: products are rounded before they are added.
void multiply_rows(const StoredMatrix& w, NumberMap map, RowView<const Field> x, RowView<Field> y);
void multiply_rows(const StoredMatrix& w, RowView<const double> x, RowView<double> y);
void multiply_rows(const StoredMatrix& w, RowView<const float> x, RowView<float> y);

/// y[t][c] += sum over r of x[t][r] w[r][c], the rows one after the other: w as [in, out].
void add_columns(const StoredMatrix& w, NumberMap map, RowView<const Field> x, RowView<Field> y);
void add_columns(const StoredMatrix& w, RowView<const double> x, RowView<double> y);
void add_columns(const StoredMatrix& w, RowView<const float> x, RowView<float> y);

}  // namespace shardtool::kernels
