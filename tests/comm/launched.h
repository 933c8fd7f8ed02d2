#pragma once

#include <string>
#include <vector>

namespace shardtool::comm {

/// What became of a launch of tests/comm/process.cc.
struct Launched {
  int status = 0;                 ///< of the launcher; for tcp the highest of the processes
  std::vector<std::string> said;  ///< by each rank; empty where it was killed before
  double seconds = 0;
};

/// Starts `size` processes of the engine, "tcp" by their environment, "mpi" by mpirun, which play
/// this part.
Launched launch(const std::string& engine, int size, const std::string& part, int seed = 0);

/// Why the engine cannot be tested here; empty when it can.
std::string reason_to_skip(const std::string& engine);

}  // namespace shardtool::comm
