#pragma once

#include <functional>

#include "lib/comm/communicator.h"

namespace shardtool::comm {

/// Runs `body` as each of `ranks` processes, every one a thread of this process, and returns when
/// all have ended. The reference for every other engine.
///
/// A rank whose body throws ends the run for all. Throws the exception of the lowest rank that
/// failed by itself, in preference to ranks that lost a peer or were stopped; an Error gets a note
/// that names the rank. Throws kLimit, without a call of `body`, if the system refuses a thread.
void run_embedded(int ranks, const std::function<void(Communicator&)>& body);

}  // namespace shardtool::comm
