#pragma once

#include <memory>
#include <string>

#include "kernels/device/accelerator.h"
#include "kernels/device/device.h"
#include "kernels/native/native_products.h"

namespace shardtool::kernels {

/// "cuBLASLt 13.1.0 (libcublasLt.so.13)". `file` is the library, or empty: what the loader finds
/// under its usual name. Throws kEngineMissing where it is not here or lacks a function, and in a
/// build without it. Asks for no GPU.
std::string found_cublaslt(const std::string& file);

/// NVIDIA's library of products of matrices, opened at run time, for one GPU. Sums are not split
/// among groups of threads, so that their order does not depend on who comes first.
class CublasLt {
 public:
  /// Room that the library has on the GPU for what is under way.
  static constexpr size_t kWorkspaceBytes = size_t{32} << 20;

  /// On the current device. `file` as of found_cublaslt; throws what that throws, and
  /// kDeviceFailed where the library does not begin. The accelerator outlives this.
  CublasLt(Accelerator& accelerator, const std::string& file);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  /// Queues the product; nothing for an empty one. Throws kDeviceFailed where a call of the library
  /// fails, and kEngineMissing with the sizes where it knows no way to compute them.
  void multiply(const Gemm& gemm, gpu::Stream stream);

  /// What multiply() uses beside its operands.
  const std::byte* workspace() const { return workspace_; }

 private:
  struct State;

  std::unique_ptr<State> state_;
  [[maybe_unused]] Accelerator& accelerator_;  // by a build without the library
  std::byte* workspace_ = nullptr;
};

/// Opens it for an accelerator, into `library` unless it is there already; says which it is, or why
/// there is none. Throws kDeviceFailed where it is here and does not begin.
ProductLibrary open_cublaslt(Accelerator& accelerator, const std::string& file,
                             std::unique_ptr<CublasLt>& library);

}  // namespace shardtool::kernels
