#pragma once

#include <optional>
#include <string>

#include "lib/comm/launch.h"
#include "lib/comm/tcp/meeting_place.h"
#include "lib/tutorial/demo.h"

namespace shardtool::api {

struct DemoRunOptions {
  int ranks = 4;           ///< of the embedded engine; of others the processes of the launch
  std::string engine;      ///< "embedded", "tcp", "mpi", "nccl"; empty: as the launch says
  std::string mpi_plugin;  ///< empty: where it is installed
  std::optional<comm::Launch> launch;
  comm::MeetingPlace meeting;
  std::uint64_t seed = 1;
};

struct DemoRunReport {
  std::string engine;
  tutorial::DemoReport demo;
};

/// Runs the two-layer MLP in every sharding, forward and backward, and plants faults in it; every
/// process of a launch calls it and gets the same report. Throws what run_ranks throws.
DemoRunReport run_demo(const DemoRunOptions& options);

}  // namespace shardtool::api
