#pragma once

#include "kernels/encode/encode.h"
#include "kernels/product/product.h"

namespace shardtool::kernels {

/// A product as inference engines let a library compute it: both factors in the weights' dtype,
/// sums in f32, in any order.
///
///     is_in_out   y[t][c] += sum over r of x[t][r] w[r][c]    as add_columns
///     else        y[t][r]  = sum over k of w[r][k] x[t][k]    as multiply_rows
///
/// N1 x has w's dtype, for which is_float_storage holds, and as many rows as y
struct NativeProducts {
  StoredMatrix w;
  StoredMatrix x;
  RowView<float> y;
  bool is_in_out = false;
};

/// The same product for BLAS libraries, all matrices column-major:
///
///     d(i, j) = sum over k of op(a)(i, k) b(k, j)     (+ d(i, j) if adds)
///     a is m x k, or k x m and transposed; b is k x n, d is m x n; element (i, j) of a matrix with
///     leading dimension l is at i + j l
struct Gemm {
  Dtype dtype = Dtype::kBF16;  ///< dtype of a and b
  bool is_transposed = false;  ///< transposes a
  bool adds = false;
  i64 m = 0, n = 0, k = 0;
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  float* d = nullptr;
  i64 lda = 0, ldb = 0, ldd = 0;

  bool is_empty() const { return m == 0 || n == 0 || k == 0; }
};

Gemm gemm_of(const NativeProducts& products);

}  // namespace shardtool::kernels
