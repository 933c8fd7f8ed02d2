#pragma once

#include <memory>
#include <string>

#include "kernels/device/accelerator.h"
#include "kernels/device/device.h"
#include "kernels/native/native_products.h"

namespace shardtool::kernels {

/// Returns "cuBLASLt 13.1.0 (libcublasLt.so.13)". An empty `file` searches for the library's usual
/// name. Throws kEngineMissing if the library is missing, lacks a function, or the build has no
/// support for it. Needs no GPU.
std::string found_cublaslt(const std::string& file);

/// NVIDIA's library of matrix products, loaded at run time, for one GPU. Split reductions are off,
/// so that the order of a sum does not depend on thread timing.
class CublasLt {
 public:
  /// Size of the library's workspace on the GPU.
  static constexpr size_t kWorkspaceBytes = size_t{32} << 20;

  /// Opens the library on the current device. `file` and its errors as of found_cublaslt; throws
  /// kDeviceFailed if the library fails to start. The accelerator must outlive this object.
  CublasLt(Accelerator& accelerator, const std::string& file);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  /// Queues the product; does no work for an empty one. Throws kDeviceFailed if a library call
  /// fails, and kEngineMissing with the sizes if the library has no algorithm for them.
  void multiply(const Gemm& gemm, gpu::Stream stream);

  /// Workspace of multiply().
  const std::byte* workspace() const { return workspace_; }

 private:
  struct State;

  std::unique_ptr<State> state_;
  [[maybe_unused]] Accelerator& accelerator_;  // unused in a build without the library
  std::byte* workspace_ = nullptr;
};

/// Opens the library for an accelerator into `library`, unless it is open. Returns its name, or why
/// there is none. Throws kDeviceFailed if it exists and fails to start.
ProductLibrary open_cublaslt(Accelerator& accelerator, const std::string& file,
                             std::unique_ptr<CublasLt>& library);

}  // namespace shardtool::kernels
