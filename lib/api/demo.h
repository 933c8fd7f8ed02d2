#pragma once

#include <optional>
#include <string>

#include "lib/comm/launch.h"
#include "lib/comm/tcp/meeting_place.h"
#include "lib/tutorial/demo.h"

namespace shardtool::api {

struct DemoRunOptions {
  int ranks = 4;           ///< embedded engine only; other engines use the processes of the launch
  std::string engine;      ///< "embedded", "tcp", "mpi", "nccl"; empty: chosen by the launch
  std::string mpi_plugin;  ///< empty: the installed plugin
  std::optional<comm::Launch> launch;
  comm::MeetingPlace meeting;
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
