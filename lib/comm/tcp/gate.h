#pragma once

#include <list>
#include <vector>

#include "lib/comm/tcp/handshake.h"
#include "lib/comm/tcp/socket.h"

namespace shardtool::comm {

/// Admits the processes of a launch to a listening one, and refuses others. All connections are
/// served at the same time, so that slow or silent ones delay no others.
class Gate {
 public:
  /// Takes the rank of the listening process.
  Gate(const Listener& listener, const Credentials& credentials, int rank)
      : listener_(listener), credentials_(credentials), rank_(rank) {}

  /// Puts the connections of higher ranks into their slots until all are there, or `end`. Returns
  /// how many are there. A rank that connects again replaces its connection. Throws kInterrupted.
  int admit(std::vector<Socket>& peers, Deadline end);
  /// Number of connections that ended without proof of the secret.
  i64 refused() const { return refused_; }

 private:
  struct Visitor {
    Socket socket;
    HostSide side;
    Deadline until;
    std::string answer = {};
  };
  /// State of a visitor after it was served.
  enum class Verdict { kWaits, kAdmitted, kRefused };

  void wait(Deadline end) const;
  void take_in(const Socket& listening);
  void make_room();
  Verdict serve(Visitor& visitor, std::vector<Socket>& peers) const;

  const Listener& listener_;
  const Credentials& credentials_;
  const int rank_;
  std::list<Visitor> visitors_;  ///< longest waiting first
  i64 refused_ = 0;
};

}  // namespace shardtool::comm
