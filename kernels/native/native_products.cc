#include "kernels/native/native_products.h"

namespace shardtool::kernels {

/// A row-major matrix is its transpose in column-major order, so w, x and y are all transposed: y^T
/// = w x^T, or w^T x^T if the rows of w are inputs.
Gemm gemm_of(const NativeProducts& products) {
  const StoredMatrix& w = products.w;
  Gemm gemm;
  gemm.dtype = w.dtype;
  gemm.is_transposed = !products.is_in_out;
  gemm.adds = products.is_in_out;
  gemm.m = products.is_in_out ? w.columns : w.rows;
  gemm.n = products.y.count;
  gemm.k = products.is_in_out ? w.rows : w.columns;
  gemm.a = w.bytes;
  gemm.b = products.x.bytes;
  gemm.d = products.y.data;
  gemm.lda = w.stride;
  gemm.ldb = products.x.stride;
  gemm.ldd = products.y.stride;
  return gemm;
}

}  // namespace shardtool::kernels
