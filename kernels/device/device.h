#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

struct CUstream_st;

namespace shardtool::kernels {

/// Compute capability of a GPU: {9, 0} of an H100.
struct Capability {
  int major = 0;
  int minor = 0;
};
/// Formats as "9.0".
std::string to_string(const Capability& capability);

/// GPU support of this build and GPUs of this machine.
struct DeviceState {
  std::string
      compiled_for;  ///< architectures that nvcc compiled for; empty: a build without kernels
  int count = 0;
  std::string reason;                         ///< reason for a count of 0
  std::vector<Capability> capabilities = {};  ///< by the GPU's number
};

/// True if kernels for the architectures `compiled_for` ("80-real 90-real 120", as in
/// CMAKE_CUDA_ARCHITECTURES) run on a GPU: machine code of its major number and no higher minor
/// one, or PTX of no higher capability. "90a-real" runs on 9.0 alone. (CUDA C++ Programming Guide
/// 13.0, sections 3.1.2 "Binary Compatibility" and 3.1.3 "PTX Compatibility".)
bool runs_on(std::string_view compiled_for, const Capability& capability);

/// Throws kEngineMissing unless the state has a GPU with this number that the kernels run on.
void require_gpu(const DeviceState& state, int index);

/// Queries the driver, which is slow if there is one; do not call it at program start.
DeviceState device_state();

class Accelerator;

/// Opens the GPU with this number, counted from 0. Throws kEngineMissing if there is no such GPU or
/// no kernel was compiled for it, kDeviceFailed with the reason if it cannot be used.
std::unique_ptr<Accelerator> open_accelerator(int index);

/// Error for a requested GPU that is not available, with the reason.
Error no_gpu(const std::string& reason);
/// Error for a failed GPU call, with the GPU's message.
Error device_failed(const std::string& call, const std::string& reason);

namespace gpu {

/// A CUDA stream (cudaStream_t): its kernels run in order. Null is the device's default stream.
using Stream = CUstream_st*;

}  // namespace gpu
}  // namespace shardtool::kernels
