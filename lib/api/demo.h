#pragma once

#include <string>

#include "lib/comm/engine_choice.h"
#include "lib/tutorial/demo.h"

namespace shardtool::api {

struct DemoRunOptions {
  int ranks = 4;  ///< of the embedded engine; of others the processes of the launch
  comm::EngineChoice engine;
  std::uint64_t seed = 1;
};

struct DemoRunReport {
  std::string engine;
  tutorial::DemoReport demo;
};

/// Runs the two-layer MLP in every sharding, forward and backward, and plants faults in it. Every
/// process of a launch calls it and gets the same report. Throws the errors of run_ranks.
DemoRunReport run_demo(const DemoRunOptions& options);

}  // namespace shardtool::api
