#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/comm/tcp/socket.h"

namespace shardtool::comm {

/// Meeting point: a file in a folder that all processes see, or an address that all of them know.
struct MeetingPoint {
  MeetingPoint(std::string path) : file(std::move(path)) {}  // NOLINT: a path is where they meet
  /// Rank 0 listens at this address. `name` distinguishes launches that have the same secret.
  MeetingPoint(Address where, std::string name, std::string shared_secret)
      : address(std::move(where)), launch(std::move(name)), secret(std::move(shared_secret)) {}

  std::string file;
  std::optional<Address> address;  ///< instead of the file
  std::string launch;
  std::string secret;  ///< for an address; the file holds its own
};

/// Connections of a process to the others, by rank; its own slot is closed. Both ends of each have
/// proved that they know the secret of the launch (handshake.h); later traffic is not encrypted.
///
/// Over a file: rank 0 creates a secret and writes it to the file with its listening addresses.
///
///     rank 0:  listen, write `meeting_file`, accept size - 1 processes, delete the file
///     others:  read the file until it is there, connect
///
/// At an address the others know both beforehand, and no process listens on other interfaces.
///
/// The others listen, too; rank 0 sends their addresses to all, and each process connects to those
/// of lower ranks.
///
/// Throws kPeerLost when not all have come in time, the errors of writing the file, and
/// kInterrupted once it is interrupted and has waited kLastPatience for another process: until then
/// it goes on, so that it can tell all others once they are connected. Its error is told to those
/// whom it has met, which throw it, too.
std::vector<Socket> connect_processes(const MeetingPoint& point, int rank, int size,
                                      std::chrono::milliseconds patience);

}  // namespace shardtool::comm
