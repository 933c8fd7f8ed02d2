#pragma once

#include <functional>

#include "lib/comm/communicator.h"

namespace shardtool::comm {

/// Runs `part` in every process and waits until it has ended in all of them. When it failed in one,
/// the others are told to stop, and all throw that error, with a note that names the process; of
/// several errors, that of the lowest rank which was not merely stopped.
void all_do(Communicator& comm, const std::function<void()>& part);

/// Runs `body`. What it throws ends the run for all: they throw kPeerLost, which names this process
/// and says what failed; here it is thrown on.
void run_or_abort(Communicator& comm, const std::function<void()>& body);

}  // namespace shardtool::comm
