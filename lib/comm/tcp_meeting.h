#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "shardtool/comm/socket.h"

namespace shardtool::comm {

/// To whom each process is connected: to that of rank 0 alone, which connects a thousand with a
/// thousand sockets at one of them, or to everybody.
enum class Reach { kFirst, kEverybody };

/// The connections of a process to the others, by rank; its own place is closed, and so are those
/// that the reach leaves out.
///
/// The processes meet over a file in a folder that all of them see: rank 0 writes there where it
/// listens and a secret word that the others must know.
///
///     rank 0:  listen, write `meeting_file`, accept size - 1 processes, delete the file
///     others:  read the file until it is there, connect, say the word and the rank
///
/// For everybody's reach the others listen too; rank 0 tells each where, and each process connects
/// to those of lower ranks.
///
/// Throws kPeerLost when not all have come in time, and what writing the file throws.
std::vector<Socket> connect_processes(const std::string& meeting_file, int rank, int size,
                                      std::chrono::milliseconds patience, Reach reach);

}  // namespace shardtool::comm
