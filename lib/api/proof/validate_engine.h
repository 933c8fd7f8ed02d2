#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/device/accelerator.h"
#include "lib/api/validate.h"
#include "lib/comm/communicator.h"

namespace shardtool::api {

/// Who plays the devices of a validation, and what computes.
struct ValidateEngine {
  std::unique_ptr<comm::Communicator> comm;
  std::unique_ptr<kernels::Accelerator> own;    ///< that this process opened
  kernels::Accelerator* accelerator = nullptr;  ///< null: the CPU
  std::string backend = "cpu";
  std::vector<std::string> accelerators;  ///< names, of every process; empty: CPUs
  bool has_library = false;               ///< this process' accelerator, for the native run
  /// Of every process, the library's name or why there is none; empty where it is not asked for.
  std::vector<std::string> libraries;
};

/// The engine's name: what was asked for, or else as the launch says.
std::string engine_name(const ValidateOptions& options);

/// The processes that share the devices, or this one alone, each with its GPU where the engine
/// computes on GPUs. All processes of a launch call it. Throws what comm::connect throws, kUsage
/// for an engine of one process where several were started, and for engines of GPUs kEngineMissing
/// where one of the processes has none.
ValidateEngine open_engine(const ValidateOptions& options);

}  // namespace shardtool::api
