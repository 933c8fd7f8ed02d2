#pragma once

#include "lib/comm/communicator.h"

namespace shardtool::comm {

/// How many processes of lower ranks are on this one's machine: the number of its GPU, where each
/// has one. All processes call it.
int rank_on_machine(Communicator& comm);

}  // namespace shardtool::comm
