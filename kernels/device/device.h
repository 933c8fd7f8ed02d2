#pragma once

#include <memory>
#include <string>

#include "lib/base/error.h"

struct CUstream_st;

namespace shardtool::kernels {

/// What this build and this machine have of GPUs.
struct DeviceState {
  std::string
      compiled_for;  ///< what nvcc compiled the kernels for; empty: they are not in this build
  int count = 0;
  std::string reason;  ///< why count is 0
};

/// Asks the driver, which takes a while where there is one: not for the start of the program.
DeviceState device_state();

class Accelerator;

/// The GPU of this number, from 0. Throws kEngineMissing where there is none, kDeviceFailed where
/// it cannot be used, with the reason.
std::unique_ptr<Accelerator> open_accelerator(int index);

/// That a GPU is asked for, and why there is none.
Error no_gpu(const std::string& reason);
/// That a call to a GPU failed, and what the GPU says.
Error device_failed(const std::string& call, const std::string& reason);

namespace gpu {

/// Kernels on one stream run in order (cudaStream_t); null is the device's own.
using Stream = CUstream_st*;

}  // namespace gpu
}  // namespace shardtool::kernels
