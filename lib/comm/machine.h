#pragma once

#include <string>

#include "lib/comm/communicator.h"

namespace shardtool::comm {

/// Number of processes with lower ranks on this machine: the index of this process's GPU if each
/// process has one. All processes call it.
int rank_on_machine(Communicator& comm);

/// Identifies this machine until its next boot.
std::string machine_name();

/// Number of the GPU that the n-th process of a machine uses, of those that it sees: the only one,
/// as launchers that bind a GPU to each process leave it (srun --gpus-per-task=1), or else the
/// n-th. Throws kEngineMissing if there are too few.
int gpu_of(int rank_on_machine, int visible_gpus);

}  // namespace shardtool::comm
