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

/// Processes that share one run: those of a launch, or this one alone. They meet next to the
/// output.
class Team {
 public:
  /// Waits for the others. Throws kPeerLost, kUsage if they have different options, and the errors
  /// of examining the output.
  explicit Team(const WriteOptions& options);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  comm::Communicator& comm() { return *comm_; }
  int rank() const { return comm_->rank(); }
  int size() const { return comm_->size(); }
  bool leads() const { return rank() == 0; }
  /// Runs comm::all_do: succeeds in every process, or throws in every process.
  void all_do(const std::function<void()>& part);
  /// Returns the sum over all processes, in each.
  i64 sum(i64 mine);
  /// True if `mine` is true in all processes.
  bool agrees(bool mine) { return sum(mine ? 1 : 0) == size(); }
  /// Set if this process is interrupted or another one gives up; null if neither can happen.
  const std::atomic<bool>* cancel() const { return cancel_; }

 private:
  void watch(const std::stop_token& done);

  std::unique_ptr<comm::Communicator> comm_;
  const std::atomic<bool>* interrupted_;
  const std::atomic<bool>* cancel_;
  std::atomic<bool> stopped_ = false;
  std::jthread watcher_;  ///< last member: it uses those above
};

/// Assigns each tensor move to a process: in source order, with about equal bytes per process.
/// `order` lists the moves; the result is indexed by move.
std::vector<int> share_out(std::span<const exec::TensorMove> moves, std::span<const size_t> order,
                           int processes);

/// Returns the smallest and largest share.
WorkShares summarize_shares(std::span<const exec::TensorMove> moves, std::span<const int> owners,
                            int processes);

}  // namespace shardtool::api
