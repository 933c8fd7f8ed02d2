#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/device/accelerator.h"
#include "lib/api/validate.h"
#include "lib/comm/communicator.h"

namespace shardtool::api {

/// The communicator of a validation and its compute device.
struct ValidateEngine {
  std::unique_ptr<comm::Communicator> comm;
  std::vector<std::unique_ptr<kernels::Accelerator>> own;  ///< opened by this process
  std::vector<kernels::Accelerator*> used;                 ///< empty: the CPU
  std::string backend = "cpu";
  std::vector<std::string> accelerators;  ///< names, per process; empty: CPUs
  bool has_library = false;  ///< this process' accelerators have one for the native run
  /// Per process, the library's name or why there is none; empty unless requested.
  std::vector<std::string> libraries;
};

/// Returns the requested engine's name, or the launch's default.
std::string engine_name(const ValidateOptions& options);

/// Connects the processes that share the devices, or returns a single process; each opens its GPU
/// if the engine computes on GPUs, the single process of gpu-virtual all that it sees. All
/// processes of a launch call it. Throws the errors of comm::connect, kUsage for a single-process
/// engine in a launch of several, and kEngineMissing if an engine of GPUs has a process without
/// one.
ValidateEngine open_engine(const ValidateOptions& options);

}  // namespace shardtool::api
