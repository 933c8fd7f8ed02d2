#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "lib/api/transform.h"
#include "lib/comm/communicator.h"
#include "lib/exec/move.h"

namespace shardtool::api {

/// The processes that share one run: those that a launcher started, or this one alone. They meet
/// beside the output.
class Team {
 public:
  /// Waits for the others. Throws kPeerLost, kUsage when they were started with different options,
  /// and what looking at the output throws.
  explicit Team(const WriteOptions& options);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  comm::Communicator& comm() { return *comm_; }
  int rank() const { return comm_->rank(); }
  int size() const { return comm_->size(); }
  bool leads() const { return rank() == 0; }
  /// comm::all_do: in every process, or an error in every process.
  void all_do(const std::function<void()>& part);
  /// The sum over all processes, in each.
  i64 sum(i64 mine);
  /// Whether it is so for all processes.
  bool agrees(bool mine) { return sum(mine ? 1 : 0) == size(); }
  /// Set when this process is interrupted, or another gives up; null when nothing can.
  const std::atomic<bool>* cancel() const { return cancel_; }

 private:
  void watch(const std::stop_token& done);

  std::unique_ptr<comm::Communicator> comm_;
  const std::atomic<bool>* interrupted_;
  const std::atomic<bool>* cancel_;
  std::atomic<bool> stopped_ = false;
  std::jthread watcher_;  ///< last: it uses what stands above
};

/// Which process moves which tensor: in the order of the source, everyone about the same bytes.
/// `order` lists the moves; the answer is by number of move.
std::vector<int> share_out(std::span<const exec::TensorMove> moves, std::span<const size_t> order,
                           int processes);

/// How even that is.
WorkShares summarize_shares(std::span<const exec::TensorMove> moves, std::span<const int> owners,
                            int processes);

}  // namespace shardtool::api
