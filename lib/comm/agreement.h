#pragma once

#include <functional>

#include "lib/comm/communicator.h"

namespace shardtool::comm {

/// Runs `part` in every process and waits until all have ended. If it fails in one process, raises
/// a stop in the others, and all throw that error with a note that names the process; of several
/// errors, that of the lowest rank that was not merely stopped.
void all_do(Communicator& comm, const std::function<void()>& part);

/// Runs `step`, which fails in every process alike, or in this one alone because it is interrupted:
/// then the others throw that error, too.
void tell_interruption(Communicator& comm, const std::function<void()>& step);

/// Runs `body` and rethrows its exception. An exception ends the run for all: the other processes
/// throw the same error, which names this process; of several, the first.
void run_or_abort(Communicator& comm, const std::function<void()>& body);

}  // namespace shardtool::comm
