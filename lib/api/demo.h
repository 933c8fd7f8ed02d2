#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/device/accelerator.h"
#include "lib/comm/engine_choice.h"
#include "lib/tutorial/demo.h"

namespace shardtool::api {

struct DemoRunOptions {
  int ranks = 4;  ///< of the embedded engine; of others the processes of the launch
  comm::EngineChoice engine;
  /// The ranks are threads of this process that multiply on its GPUs, taken in turn. With the nccl
  /// engine every process multiplies on its own GPU; with others the CPU does.
  bool gpu_virtual = false;
  /// Opens the accelerator of a rank instead of a GPU, for tests.
  std::function<std::unique_ptr<kernels::Accelerator>(int rank)> open_accelerator = {};
  std::uint64_t seed = 1;
  /// Sizes of the model and the batch; the seed is not read. Without them: small ones that four
  /// does not divide.
  std::optional<tutorial::DemoSizes> sizes = {};
  /// Location of an unsharded checkpoint with "layer_0/weights" [in, hidden], "layer_1/weights"
  /// [hidden, out], and both or no "layer_N/bias"; empty: random numbers.
  std::string checkpoint = {};
};

struct DemoRunReport {
  std::string engine;
  std::string backend = "cpu";            ///< device of the products: "cpu" or "cuda"
  std::vector<std::string> accelerators;  ///< GPU of every rank; empty: CPUs
  tutorial::DemoReport demo;
};

/// Runs the two-layer MLP in every sharding, forward and backward, and plants faults in it. Every
/// process of a launch calls it and gets the same report. Throws the errors of run_ranks and of
/// open_checkpoint; kUsage for both sizes and a checkpoint, and for gpu_virtual in a launch;
/// kEngineMissing and kDeviceFailed if a rank has no GPU that works; kUnsupported, kUnknownName and
/// kShapeMismatch for a checkpoint that is no model of two layers.
DemoRunReport run_demo(const DemoRunOptions& options);

}  // namespace shardtool::api
