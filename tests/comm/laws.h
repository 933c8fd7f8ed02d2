#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lib/comm/communicator.h"

namespace shardtool::comm {

/// A run of `size` processes: `body` as each of them. Throws what one of them failed with.
using Run = std::function<void(int size, const std::function<void(Communicator&)>& body)>;

/// Does everything that a communicator can, with messages that follow from the seed, and throws
/// std::logic_error when a process got anything but what the contract says. Returns a digest of all
/// that it got, which is the same on every engine.
std::string keep_laws(Communicator& comm, std::uint64_t seed);

/// The same in `size` processes, and holds the digests against those of the embedded engine.
void check_laws(const Run& run, int size, std::uint64_t seed);

}  // namespace shardtool::comm
