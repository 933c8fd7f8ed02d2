#pragma once

#include <optional>
#include <string>

#include "lib/comm/engine_choice.h"
#include "lib/tutorial/demo.h"

namespace shardtool::api {

struct DemoRunOptions {
  int ranks = 4;  ///< of the embedded engine; of others the processes of the launch
  comm::EngineChoice engine;
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
  tutorial::DemoReport demo;
};

/// Runs the two-layer MLP in every sharding, forward and backward, and plants faults in it. Every
/// process of a launch calls it and gets the same report. Throws the errors of run_ranks and of
/// open_checkpoint; kUsage for both sizes and a checkpoint; kUnsupported, kUnknownName and
/// kShapeMismatch for a checkpoint that is no model of two layers.
DemoRunReport run_demo(const DemoRunOptions& options);

}  // namespace shardtool::api
