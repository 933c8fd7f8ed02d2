#pragma once

#include <string>
#include <vector>

namespace shardtool::comm {

/// Result of a launch of tests/comm/process.cc.
struct Launched {
  int status = 0;                 ///< status of the launcher; for tcp the highest of the processes
  std::vector<std::string> said;  ///< output of each rank; empty if it was killed before
  double seconds = 0;
};

/// Starts `size` processes of the engine with this part: "tcp" and "nccl" by their environment,
/// "mpi" by mpirun.
Launched launch(const std::string& engine, int size, const std::string& part, int seed = 0);

/// Reason why the engine cannot be tested here; empty if it can.
std::string reason_to_skip(const std::string& engine);

}  // namespace shardtool::comm
