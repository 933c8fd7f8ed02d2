#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/comm/communicator.h"
#include "lib/engine/run/counted.h"
#include "lib/engine/run/part.h"
#include "lib/mesh/mesh.h"
#include "lib/model/flow/flow.h"

namespace shardtool::engine {

/// Counts by mesh axes ("tp") and move.
using Counts = std::map<std::pair<std::string, plan::Move>, Counted>;

/// Communication between the simulated devices of a mesh, of which each process has some. Sums are
/// in the order of ranks, so their bits do not depend on the number of processes.
class Fabric {
 public:
  /// Process p of n simulates the ranks [size p / n, size (p + 1) / n). `comm` may be null: one
  /// process.
  Fabric(mesh::Mesh mesh, comm::Communicator* comm);

  const mesh::Mesh& mesh() const { return mesh_; }
  /// The ranks of this process, ascending.
  const std::vector<i64>& own() const { return own_; }
  bool is_first_process() const { return comm_ == nullptr || comm_->rank() == 0; }
  comm::Communicator* comm() const { return comm_; }
  const Counts& counts() const { return counts_; }

  /// Runs and counts a collective. `value` has the parts of this process' ranks.
  template <class N>
  void exchange(const ops::Exchange& exchange, i64 tokens, Placed<N>& value);
  /// Passes the results of one pipeline stage to the next. Every receiver of this process gets the
  /// part of the sender that differs from it only along the hand-off's axes. Counts the exchange.
  /// Throws kUnsupported if there is no such sender.
  template <class N>
  Placed<N> hand_over(const ops::Exchange& handoff, std::span<const i64> senders,
                      std::span<const i64> receivers, const Placed<N>& sent);
  /// Sums over the devices along the axes on which the value is Partial. Not counted.
  template <class N>
  void reduce(const std::vector<plan::Placement>& on, Placed<N>& value);
  /// Copies the first process' parts to every process.
  template <class N>
  void broadcast(Placed<N>& parts);
  std::string broadcast(std::string bytes);

 private:
  /// Returns the parts of this process and of all others.
  template <class N>
  Placed<N> with_others(const Placed<N>& own);
  /// Returns the ranks of `all` that differ from `rank` only on these axes, ascending.
  std::vector<i64> group(const std::vector<i64>& all, i64 rank,
                         const std::vector<std::string>& along) const;
  /// Returns the process of a rank.
  int process_of(i64 rank) const;
  void count(const ops::Exchange& exchange, i64 elements);
  /// Both return the number of elements that the largest group jointly owns.
  template <class N>
  i64 sum_over(const std::vector<std::string>& along, Placed<N>& value);
  template <class N>
  i64 gather_over(const std::vector<std::string>& along, i64 tokens, Placed<N>& value);

  mesh::Mesh mesh_;
  comm::Communicator* comm_;
  std::vector<i64> own_;
  Counts counts_;
};

}  // namespace shardtool::engine
