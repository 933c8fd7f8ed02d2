#pragma once

#include <memory>
#include <string>

#include "lib/base/error.h"

struct CUstream_st;

namespace shardtool::kernels {

/// GPU support of this build and GPUs of this machine.
struct DeviceState {
  std::string
      compiled_for;  ///< architectures that nvcc compiled for; empty: a build without kernels
  int count = 0;
  std::string reason;  ///< reason for a count of 0
};

/// Queries the driver, which is slow if there is one; do not call it at program start.
DeviceState device_state();

class Accelerator;

/// Opens the GPU with this number, counted from 0. Throws kEngineMissing if there is no such GPU,
/// kDeviceFailed with the reason if it cannot be used.
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
