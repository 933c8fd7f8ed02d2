#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lib/comm/communicator.h"

namespace shardtool::comm {

/// Runs `body` in `size` processes. Throws the error of a failed one.
using Run = std::function<void(int size, const std::function<void(Communicator&)>& body)>;

/// Exercises every operation of a communicator with messages derived from the seed. Throws
/// std::logic_error if a process gets a result that violates the contract. Returns a digest of all
/// results, which is the same on every engine.
std::string keep_laws(Communicator& comm, std::uint64_t seed);

/// Runs keep_laws in `size` processes and compares the digests with the embedded engine's.
void check_laws(const Run& run, int size, std::uint64_t seed);

}  // namespace shardtool::comm
