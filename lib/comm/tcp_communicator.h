#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "shardtool/comm/communicator.h"

namespace shardtool::comm {

/// How long processes wait for each other to begin.
inline constexpr std::chrono::seconds kMeetingTime{120};

/// Processes, on one machine or several, that are connected by TCP to the one of rank 0. They meet
/// over a file in a folder that all of them see: rank 0 writes there where it listens and a secret
/// word that the others must know. A process that dies closes its connection, so that the others
/// know at once.
///
///     rank 0:  listen, write `meeting_file`, accept size - 1 processes, delete the file
///     others:  read the file until it is there, connect, say the word and the rank
///
/// Throws kPeerLost when not all have come in time, and what writing the file throws.
std::unique_ptr<Communicator> meet(const std::string& meeting_file, int rank, int size,
                                   std::chrono::milliseconds patience = kMeetingTime);

}  // namespace shardtool::comm
