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

/// The devices of a mesh, some of them played by this process and the others by its peers: what
/// moves between them. Sums are in the order of ranks, so that every number of processes gives the
/// same bits.
class Fabric {
 public:
  /// Process p of n plays the ranks [size p / n, size (p + 1) / n). `comm` may be null: one
  /// process.
  Fabric(mesh::Mesh mesh, comm::Communicator* comm);

  const mesh::Mesh& mesh() const { return mesh_; }
  /// The ranks that this process plays, ascending.
  const std::vector<i64>& own() const { return own_; }
  bool is_first_process() const { return comm_ == nullptr || comm_->rank() == 0; }
  comm::Communicator* comm() const { return comm_; }
  const Counts& counts() const { return counts_; }

  /// Carries out a move of a value of which this process has its own ranks' parts, and counts it.
  template <class N>
  void exchange(const ops::Exchange& exchange, i64 tokens, Placed<N>& value);
  /// Hands on what the devices of one stage of a pipeline made: every receiver of this process gets
  /// the part of the sender that differs from it only along the hand-off's axes. Counts it. Throws
  /// kUnsupported where there is none.
  template <class N>
  Placed<N> hand_over(const ops::Exchange& handoff, std::span<const i64> senders,
                      std::span<const i64> receivers, const Placed<N>& sent);
  /// The sum over the devices along the axes on which the value is Partial, uncounted.
  template <class N>
  void reduce(const std::vector<plan::Placement>& on, Placed<N>& value);
  /// The first process' parts, in every process.
  template <class N>
  void broadcast(Placed<N>& parts);
  std::string broadcast(std::string bytes);

 private:
  /// Adds the other processes' parts.
  template <class N>
  Placed<N> with_others(const Placed<N>& own);
  /// The ranks of `all` that differ from `rank` only on these axes, ascending.
  std::vector<i64> group(const std::vector<i64>& all, i64 rank,
                         const std::vector<std::string>& along) const;
  /// Returns the process of a rank.
  int process_of(i64 rank) const;
  void count(const ops::Exchange& exchange, i64 elements);
  /// Both return the numbers that the largest group jointly owns.
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
