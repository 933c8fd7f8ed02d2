#pragma once

#include "lib/comm/communicator.h"
#include "lib/engine/diagnosis/verdict.h"

namespace shardtool::engine {

/// Merges the verdicts of all processes, each about its own devices; the result is the same in all.
/// Counts are added, the worse verdict wins, and each layer keeps the fault with the earliest step
/// and lowest device. Collectives and tested tensors are equal everywhere. Throws the errors of
/// all_gather.
Verdict merged(const Verdict& mine, comm::Communicator& comm);

}  // namespace shardtool::engine
