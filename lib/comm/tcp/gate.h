#pragma once

#include <atomic>
#include <list>
#include <vector>

#include "lib/comm/tcp/handshake.h"
#include "lib/comm/tcp/socket.h"

namespace shardtool::comm {

/// Throws kInterrupted when the flag is set; null is a flag that never is.
void check_not_cancelled(const std::atomic<bool>* cancel);

/// Lets the processes of a launch in where one of them listens, and nobody else. All who connect
/// are served at the same time, so that those who are slow or silent delay nobody.
class Gate {
 public:
  /// `rank` is that of the process that listens; `cancel` may be null.
  Gate(const Listener& listener, const Credentials& credentials, int rank,
       const std::atomic<bool>* cancel = nullptr)
      : listener_(listener), credentials_(credentials), rank_(rank), cancel_(cancel) {}

  /// Puts the connections of higher ranks into their places until all are there, or `end`. Returns
  /// how many are there. A rank that comes again takes its place again. Throws kInterrupted soon
  /// after `cancel` is set.
  int admit(std::vector<Socket>& peers, Deadline end);
  /// Connections that ended without proof of the secret.
  i64 refused() const { return refused_; }

 private:
  struct Visitor {
    Socket socket;
    HostSide side;
    Deadline until;
    std::string answer = {};
  };
  /// The state of a visitor after it was served.
  enum class Verdict { kWaits, kAdmitted, kRefused };

  void wait(Deadline end) const;
  void take_in(const Socket& listening);
  void make_room();
  Verdict serve(Visitor& visitor, std::vector<Socket>& peers) const;

  const Listener& listener_;
  const Credentials& credentials_;
  const int rank_;
  const std::atomic<bool>* cancel_;
  std::list<Visitor> visitors_;  ///< the one that has waited longest first
  i64 refused_ = 0;
};

}  // namespace shardtool::comm
