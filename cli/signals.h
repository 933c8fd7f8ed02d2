#pragma once

#include <atomic>

namespace shardtool::cli {

/// Makes a write to a closed pipe or past a file size limit fail with an error instead of a signal,
/// and opens /dev/null for closed standard streams, so that no output file gets their descriptors.
void prepare_process();

/// From now on the first SIGHUP (a terminal that closed), SIGINT or SIGTERM sets the returned flag
/// and the second ends the process immediately. A signal that was ignored at start (nohup, a
/// script's `&`) stays ignored.
const std::atomic<bool>* catch_interrupts();

/// Returns the signal that set the flag, or 0.
int caught_signal();

}  // namespace shardtool::cli
