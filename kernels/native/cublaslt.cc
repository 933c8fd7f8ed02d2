#include "kernels/native/cublaslt.h"

#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

#include "lib/base/dynamic_library.h"

namespace shardtool::kernels {
namespace {

/// The library's functions in use, with their own names and types.
struct Functions {
  explicit Functions(const std::string& file)
      : library("cuBLASLt",
                with_nvidia_wheels(
                    {file.empty() ? fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR) : file})) {}

  DynamicLibrary library;

#define SHARDTOOL_FUNCTION(name) decltype(&::name) name = library.function<decltype(&::name)>(#name)
  SHARDTOOL_FUNCTION(cublasLtGetVersion);
  SHARDTOOL_FUNCTION(cublasLtGetStatusString);
  SHARDTOOL_FUNCTION(cublasLtCreate);
  SHARDTOOL_FUNCTION(cublasLtDestroy);
  SHARDTOOL_FUNCTION(cublasLtMatmulDescCreate);
  SHARDTOOL_FUNCTION(cublasLtMatmulDescDestroy);
  SHARDTOOL_FUNCTION(cublasLtMatmulDescSetAttribute);
  SHARDTOOL_FUNCTION(cublasLtMatrixLayoutCreate);
  SHARDTOOL_FUNCTION(cublasLtMatrixLayoutDestroy);
  SHARDTOOL_FUNCTION(cublasLtMatmulPreferenceCreate);
  SHARDTOOL_FUNCTION(cublasLtMatmulPreferenceDestroy);
  SHARDTOOL_FUNCTION(cublasLtMatmulPreferenceSetAttribute);
  SHARDTOOL_FUNCTION(cublasLtMatmulAlgoGetHeuristic);
  SHARDTOOL_FUNCTION(cublasLtMatmul);
#undef SHARDTOOL_FUNCTION

  void check(cublasStatus_t status, const char* call) const {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw device_failed(call, fmt::format("cuBLASLt says {}", cublasLtGetStatusString(status)));
  }
};

/// Owns a handle that the library created.
template <class Handle>
class Made {
 public:
  explicit Made(cublasStatus_t (*destroy)(Handle)) : destroy_(destroy) {}
  ~Made() {
    if (handle_ != nullptr) destroy_(handle_);
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;

  Handle* out() { return &handle_; }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
  cublasStatus_t (*destroy_)(Handle);
};

cudaDataType_t type_of(Dtype dtype) {
  if (dtype == Dtype::kF32) return CUDA_R_32F;
  return dtype == Dtype::kF16 ? CUDA_R_16F : CUDA_R_16BF;
}

/// Alignment of an address, at most 256.
std::uint32_t alignment_of(const void* address) {
  constexpr std::uintptr_t kMost = 256;
  const auto number = reinterpret_cast<std::uintptr_t>(address) | kMost;
  return static_cast<std::uint32_t>(number & (~number + 1));
}

/// Key of a product: everything but its operands.
using Shape = std::tuple<Dtype, bool, i64, i64, i64, i64, i64, i64, std::uint32_t, std::uint32_t,
                         std::uint32_t>;
Shape shape_of(const Gemm& gemm) {
  return {gemm.dtype,
          gemm.is_transposed,
          gemm.m,
          gemm.n,
          gemm.k,
          gemm.lda,
          gemm.ldb,
          gemm.ldd,
          alignment_of(gemm.a),
          alignment_of(gemm.b),
          alignment_of(gemm.d)};
}

/// A product as cuBLASLt descriptors.
class Description {
 public:
  Description(const Functions& api, const Gemm& gemm)
      : api_(api),
        operation_(api.cublasLtMatmulDescDestroy),
        a_(api.cublasLtMatrixLayoutDestroy),
        b_(api.cublasLtMatrixLayoutDestroy),
        d_(api.cublasLtMatrixLayoutDestroy) {
    api.check(api.cublasLtMatmulDescCreate(operation_.out(), CUBLAS_COMPUTE_32F, CUDA_R_32F),
              "cublasLtMatmulDescCreate");
    const cublasOperation_t of_a = gemm.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    api.check(api.cublasLtMatmulDescSetAttribute(operation_.get(), CUBLASLT_MATMUL_DESC_TRANSA,
                                                 &of_a, sizeof of_a),
              "cublasLtMatmulDescSetAttribute");
    const cudaDataType_t type = type_of(gemm.dtype);
    lay_out(a_, type, gemm.is_transposed ? gemm.k : gemm.m, gemm.is_transposed ? gemm.m : gemm.k,
            gemm.lda);
    lay_out(b_, type, gemm.k, gemm.n, gemm.ldb);
    lay_out(d_, CUDA_R_32F, gemm.m, gemm.n, gemm.ldd);
  }

  /// The algorithm that the library's heuristic ranks first.
  cublasLtMatmulAlgo_t algorithm(cublasLtHandle_t handle, const Gemm& gemm) const {
    Made<cublasLtMatmulPreference_t> preference(api_.cublasLtMatmulPreferenceDestroy);
    api_.check(api_.cublasLtMatmulPreferenceCreate(preference.out()),
               "cublasLtMatmulPreferenceCreate");
    const std::uint64_t workspace = CublasLt::kWorkspaceBytes;
    prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
    const std::uint32_t unsplit = CUBLASLT_REDUCTION_SCHEME_NONE;
    prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, unsplit);
    prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(gemm.a));
    prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(gemm.b));
    prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(gemm.d));
    prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(gemm.d));
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    const cublasStatus_t status =
        api_.cublasLtMatmulAlgoGetHeuristic(handle, operation_.get(), a_.get(), b_.get(), d_.get(),
                                            d_.get(), preference.get(), 1, &best, &found);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0)) {
      throw no_way(gemm);
    }
    api_.check(status, "cublasLtMatmulAlgoGetHeuristic");
    return best.algo;
  }

  void multiply(cublasLtHandle_t handle, const Gemm& gemm, const cublasLtMatmulAlgo_t& algorithm,
                std::byte* workspace, cudaStream_t stream) const {
    const float alpha = 1;
    const float beta = gemm.adds ? 1 : 0;
    api_.check(api_.cublasLtMatmul(handle, operation_.get(), &alpha, gemm.a, a_.get(), gemm.b,
                                   b_.get(), &beta, gemm.d, d_.get(), gemm.d, d_.get(), &algorithm,
                                   workspace, CublasLt::kWorkspaceBytes, stream),
               "cublasLtMatmul");
  }

 private:
  using Layout = Made<cublasLtMatrixLayout_t>;

  void lay_out(Layout& layout, cudaDataType_t type, i64 rows, i64 columns, i64 leading) const {
    api_.check(api_.cublasLtMatrixLayoutCreate(layout.out(), type, static_cast<std::uint64_t>(rows),
                                               static_cast<std::uint64_t>(columns), leading),
               "cublasLtMatrixLayoutCreate");
  }

  template <class Value>
  void prefer(const Made<cublasLtMatmulPreference_t>& preference,
              cublasLtMatmulPreferenceAttributes_t attribute, Value value) const {
    api_.check(api_.cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value,
                                                         sizeof value),
               "cublasLtMatmulPreferenceSetAttribute");
  }

  static Error no_way(const Gemm& gemm) {
    return engine_missing(fmt::format("cuBLASLt knows no way to multiply {} x {} by {} x {} of {}",
                                      gemm.m, gemm.k, gemm.k, gemm.n, to_string(gemm.dtype)))
        .help("leave --native out: all other runs have kernels of their own");
  }

  const Functions& api_;
  Made<cublasLtMatmulDesc_t> operation_;
  Layout a_, b_, d_;
};

}  // namespace

struct CublasLt::State {
  explicit State(const std::string& file) : api(file), handle(api.cublasLtDestroy) {
    api.check(api.cublasLtCreate(handle.out()), "cublasLtCreate");
  }

  Functions api;
  Made<cublasLtHandle_t> handle;
  std::map<Shape, cublasLtMatmulAlgo_t> algorithms;  ///< cached: a query is slower than a product
};

std::string found_cublaslt(const std::string& file) {
  const Functions api(file);
  // Version: 10,000 per major version, 100 per minor version.
  const size_t version = api.cublasLtGetVersion();
  return fmt::format("cuBLASLt {}.{}.{} ({})", version / 10'000, version / 100 % 100, version % 100,
                     api.library.name());
}

CublasLt::CublasLt(Accelerator& accelerator, const std::string& file)
    : state_(std::make_unique<State>(file)),
      accelerator_(accelerator),
      workspace_(accelerator.allocate(kWorkspaceBytes)) {}

CublasLt::~CublasLt() {
  accelerator_.release(workspace_);
}

void CublasLt::multiply(const Gemm& gemm, gpu::Stream stream) {
  if (gemm.is_empty()) return;
  const Description description(state_->api, gemm);
  const cublasLtHandle_t handle = state_->handle.get();
  auto way = state_->algorithms.find(shape_of(gemm));
  if (way == state_->algorithms.end()) {
    way = state_->algorithms.emplace(shape_of(gemm), description.algorithm(handle, gemm)).first;
  }
  description.multiply(handle, gemm, way->second, workspace_, stream);
}

}  // namespace shardtool::kernels
