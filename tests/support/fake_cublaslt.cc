// A fake cuBLASLt for machines without a GPU: matrices are in host memory and multiplied at once.
// It is as strict as the library may be: unsupported arguments return an invalid-value status.
// Tests control it by fake_cublaslt_*.

#include <cublasLt.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/decode/decode.h"

namespace {

using shardtool::Dtype;
using shardtool::i64;

struct Operation {
  bool is_transposed = false;
};
struct Layout {
  cudaDataType type;
  i64 rows, columns, leading;
};
struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t a = 256, b = 256, c = 256, d = 256;  ///< defaults of cuBLASLt
};
/// The problem that an algorithm was found for; it is valid for no other.
struct Found {
  i64 m, n, k;
  std::uint64_t workspace;
  std::uint32_t a, b, d;
};
static_assert(sizeof(Found) <= sizeof(cublasLtMatmulAlgo_t));

std::string failing;
std::atomic<bool> knows_ways = true;
std::atomic<int> asked = 0;
std::atomic<int> multiplied = 0;
std::atomic<int> alive = 0;

bool fails(const char* call) {
  return failing == call;
}

template <class Own, class Handle>
Own& own(Handle handle) {
  return *reinterpret_cast<Own*>(handle);
}

template <class Own, class Handle>
cublasStatus_t make(const char* call, Handle* handle, Own value) {
  if (fails(call)) return CUBLAS_STATUS_ALLOC_FAILED;
  ++alive;
  *handle = reinterpret_cast<Handle>(new Own(value));
  return CUBLAS_STATUS_SUCCESS;
}
template <class Own, class Handle>
cublasStatus_t destroy(Handle handle) {
  --alive;
  delete reinterpret_cast<Own*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

Dtype dtype_of(cudaDataType type) {
  if (type == CUDA_R_32F) return Dtype::kF32;
  return type == CUDA_R_16F ? Dtype::kF16 : Dtype::kBF16;
}

bool is_aligned(const void* address, std::uint32_t to) {
  return reinterpret_cast<std::uintptr_t>(address) % to == 0;
}

/// Reads a column-major matrix.
std::vector<float> numbers_of(const Layout& layout, const void* data) {
  std::vector<float> numbers(static_cast<size_t>(layout.rows * layout.columns));
  const Dtype dtype = dtype_of(layout.type);
  const i64 width = shardtool::bits(dtype) / 8;
  for (i64 c = 0; c < layout.columns; ++c) {
    shardtool::kernels::to_floats(dtype,
                                  static_cast<const std::byte*>(data) + c * layout.leading * width,
                                  layout.rows, numbers.data() + c * layout.rows);
  }
  return numbers;
}

Found sizes_of(const Operation& operation, const Layout& a, const Layout& d) {
  return {d.rows, d.columns, operation.is_transposed ? a.rows : a.columns, 0, 0, 0, 0};
}

bool fit(const Operation& operation, const Layout& a, const Layout& b, const Layout& d) {
  const Found sizes = sizes_of(operation, a, d);
  const i64 rows_of_op = operation.is_transposed ? a.columns : a.rows;
  for (const Layout& one : {a, b, d}) {
    if (one.rows < 1 || one.columns < 1 || one.leading < one.rows) return false;
  }
  return a.type == b.type && d.type == CUDA_R_32F && rows_of_op == d.rows && b.rows == sizes.k &&
         b.columns == d.columns;
}

}  // namespace

extern "C" {

void fake_cublaslt_fails(const char* call) {
  failing = call;
}
void fake_cublaslt_knows_ways(bool yes) {
  knows_ways = yes;
}
int fake_cublaslt_asked() {
  return asked;
}
int fake_cublaslt_multiplied() {
  return multiplied;
}
/// Handles that are not destroyed yet.
int fake_cublaslt_alive() {
  return alive;
}

size_t cublasLtGetVersion() {
  return 130'102;
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "an invalid value" : "a planned failure";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return make("cublasLtCreate", handle, Operation{});
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return destroy<Operation>(handle);
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_INVALID_VALUE;
  return make("cublasLtMatmulDescCreate", desc, Operation{});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  return destroy<Operation>(desc);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  if (fails("cublasLtMatmulDescSetAttribute")) return CUBLAS_STATUS_INTERNAL_ERROR;
  cublasOperation_t of_a = CUBLAS_OP_N;
  if (attribute != CUBLASLT_MATMUL_DESC_TRANSA || bytes != sizeof of_a) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::memcpy(&of_a, value, bytes);
  own<Operation>(desc).is_transposed = of_a == CUBLAS_OP_T;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading) {
  return make("cublasLtMatrixLayoutCreate", layout,
              Layout{type, static_cast<i64>(rows), static_cast<i64>(columns), leading});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy<Layout>(layout);
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return make("cublasLtMatmulPreferenceCreate", preference, Preference{});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy<Preference>(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  if (fails("cublasLtMatmulPreferenceSetAttribute")) return CUBLAS_STATUS_INTERNAL_ERROR;
  auto& to = own<Preference>(preference);
  const auto set = [&](auto& member) {
    if (bytes != sizeof member) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&member, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(to.workspace);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return set(to.reduction);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return set(to.a);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return set(to.b);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return set(to.c);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set(to.d);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  ++asked;
  if (fails("cublasLtMatmulAlgoGetHeuristic")) return CUBLAS_STATUS_INTERNAL_ERROR;
  const auto& liked = own<Preference>(preference);
  const auto& op = own<Operation>(operation);
  if (wanted < 1 || c != d || liked.reduction != CUBLASLT_REDUCTION_SCHEME_NONE ||
      liked.c != liked.d || !fit(op, own<Layout>(a), own<Layout>(b), own<Layout>(d))) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *found = knows_ways ? 1 : 0;
  Found sizes = sizes_of(op, own<Layout>(a), own<Layout>(d));
  sizes.workspace = liked.workspace;
  sizes.a = liked.a;
  sizes.b = liked.b;
  sizes.d = liked.d;
  std::memcpy(&results->algo, &sizes, sizeof sizes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha,
                              const void* a_data, cublasLtMatrixLayout_t a_layout,
                              const void* b_data, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c_data, cublasLtMatrixLayout_t, void* d_data,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* way,
                              void* workspace, size_t workspace_bytes, cudaStream_t) {
  if (fails("cublasLtMatmul")) return CUBLAS_STATUS_EXECUTION_FAILED;
  const auto& op = own<Operation>(operation);
  const auto& a = own<Layout>(a_layout);
  const auto& b = own<Layout>(b_layout);
  const auto& d = own<Layout>(d_layout);
  Found found{};
  std::memcpy(&found, way, sizeof found);
  const Found sizes = sizes_of(op, a, d);
  if (!fit(op, a, b, d) || found.m != sizes.m || found.n != sizes.n || found.k != sizes.k ||
      workspace_bytes < found.workspace || c_data != d_data || !is_aligned(a_data, found.a) ||
      !is_aligned(b_data, found.b) || !is_aligned(d_data, found.d)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  // Overwrites the whole workspace, as the library may during a product.
  std::memset(workspace, 0x5a, workspace_bytes);
  const std::vector<float> left = numbers_of(a, a_data);
  const std::vector<float> right = numbers_of(b, b_data);
  const float factor = *static_cast<const float*>(alpha);
  const float kept = *static_cast<const float*>(beta);
  for (i64 j = 0; j < d.columns; ++j) {
    for (i64 i = 0; i < d.rows; ++i) {
      float sum = 0;
      for (i64 k = 0; k < found.k; ++k) {
        sum += left[static_cast<size_t>(op.is_transposed ? i * a.rows + k : k * a.rows + i)] *
               right[static_cast<size_t>(j * b.rows + k)];
      }
      float& to = static_cast<float*>(d_data)[j * d.leading + i];
      to = factor * sum + (kept == 0 ? 0 : kept * to);
    }
  }
  ++multiplied;
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
