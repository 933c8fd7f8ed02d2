#pragma once

#include "lib/comm/communicator.h"
#include "lib/engine/diagnosis/verdict.h"

namespace shardtool::engine {

/// What all processes found, each about its own devices, in every process: numbers add up, the
/// worse verdict counts, and of each layer the fault of the earliest step and the lowest device.
/// Collectives and tested tensors are the same everywhere. Throws what all_gather throws.
Verdict merged(const Verdict& mine, comm::Communicator& comm);

}  // namespace shardtool::engine
