#pragma once

#include <cstddef>
#include <span>

#include "kernels/both.h"
#include "kernels/decode/decode.h"
#include "kernels/field/field.h"
#include "lib/base/checked.h"
#include "lib/base/dtype.h"

namespace shardtool::kernels {

/// A stored row-major matrix, or a range of its columns. Requires is_computable(dtype).
struct StoredMatrix {
  Dtype dtype = Dtype::kBF16;
  const std::byte* bytes = nullptr;
  i64 rows = 0;
  i64 columns = 0;
  i64 stride = columns;  ///< elements from one row to the next

  const std::byte* at(i64 r, i64 c) const { return bytes + (r * stride + c) * (bits(dtype) / 8); }
};

/// Strided rows of numbers: row t begins at data + t * stride.
template <class T>
struct RowView {
  T* data = nullptr;
  i64 count = 0;
  i64 stride = 0;

  SHARDTOOL_BOTH T* row(i64 t) const { return data + t * stride; }
};

/// y[t][r] = sum over k of w[r][k] x[t][k] for every row t of x; w is stored like nn.Linear. Exact
/// for residues. For double and float the order of a sum depends only on the number of columns, so
/// any subset of the rows of w and x gives the same bits. All CPUs give the same bits: products are
/// rounded before they are added.
void multiply_rows(const StoredMatrix& w, NumberMap map, RowView<const Field> x, RowView<Field> y);
void multiply_rows(const StoredMatrix& w, RowView<const double> x, RowView<double> y);
void multiply_rows(const StoredMatrix& w, RowView<const float> x, RowView<float> y);

/// y[t][c] += sum over r of x[t][r] w[r][c], in ascending r. w is stored as [in, out].
void add_columns(const StoredMatrix& w, NumberMap map, RowView<const Field> x, RowView<Field> y);
void add_columns(const StoredMatrix& w, RowView<const double> x, RowView<double> y);
void add_columns(const StoredMatrix& w, RowView<const float> x, RowView<float> y);

}  // namespace shardtool::kernels
