#pragma once

#include <atomic>

namespace shardtool::cli {

/// Writing to a closed pipe or past a file size limit becomes an error of that write, and streams
/// that the caller closed become /dev/null, so that no output file ever gets their numbers.
void prepare_process();

/// From now on the first SIGINT or SIGTERM sets the returned flag and the second ends the process
/// at once; one that the caller had us ignore (nohup, a script's `&`) stays ignored. Until this is
/// called, both end the process as usual.
const std::atomic<bool>* catch_interrupts();

/// The signal that set the flag, or 0.
int caught_signal();

}  // namespace shardtool::cli
