#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/comm/tcp/socket.h"

namespace shardtool::comm {

/// To whom each process is connected: to that of rank 0 alone, which connects a thousand with a
/// thousand sockets at one of them, or to everybody.
enum class Reach { kFirst, kEverybody };

/// Where processes meet: over a file in a folder that all of them see, or at an address that all of
/// them know.
struct MeetingPoint {
  MeetingPoint(std::string path) : file(std::move(path)) {}  // NOLINT: a path is where they meet
  /// Rank 0 listens there. `name` tells those of one launch from others that have the same secret.
  MeetingPoint(Address where, std::string name, std::string shared_secret)
      : address(std::move(where)), launch(std::move(name)), secret(std::move(shared_secret)) {}

  std::string file;
  std::optional<Address> address;  ///< instead of the file
  std::string launch;
  std::string secret;  ///< at an address; the file holds its own
};

/// The connections of a process to the others, by rank; its own place is closed, and so are those
/// that the reach leaves out. Both ends of each have proved that they know the secret of the launch
/// (handshake.h); what they say afterwards is not encrypted.
///
/// Over a file: rank 0 makes up a secret, and writes it there with where it listens.
///
///     rank 0:  listen, write `meeting_file`, accept size - 1 processes, delete the file
///     others:  read the file until it is there, connect
///
/// At an address the others know both beforehand, and nobody listens on other interfaces.
///
/// For everybody's reach the others listen too; rank 0 tells each where, and each process connects
/// to those of lower ranks.
///
/// Throws kPeerLost when not all have come in time, kInterrupted soon after `cancel` is set, and
/// what writing the file throws.
std::vector<Socket> connect_processes(const MeetingPoint& point, int rank, int size,
                                      std::chrono::milliseconds patience, Reach reach,
                                      const std::atomic<bool>* cancel = nullptr);

}  // namespace shardtool::comm
