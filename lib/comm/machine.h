#pragma once

#include "lib/comm/communicator.h"

namespace shardtool::comm {

/// Number of processes with lower ranks on this machine: the index of this process's GPU if each
/// process has one. All processes call it.
int rank_on_machine(Communicator& comm);

}  // namespace shardtool::comm
