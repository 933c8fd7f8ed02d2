#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/comm/communicator.h"
#include "lib/engine/run/counted.h"
#include "lib/engine/run/native_exchange.h"
#include "lib/engine/run/part.h"
#include "lib/mesh/mesh.h"
#include "lib/model/flow/flow.h"

namespace shardtool::engine {

/// Counts by mesh axes ("tp") and move.
using Counts = std::map<std::pair<std::string, plan::Move>, Counted>;

/// Communication between the simulated devices of a mesh, of which each process has some. Sums are
/// in the order of ranks, so their bits do not depend on the number of processes.
///
/// With a native type, exchanges of floats between processes are the communicator's own
/// collectives, in that type, if it has them. Their sums have its order.
class Fabric {
 public:
  /// Process p of n simulates the ranks [size p / n, size (p + 1) / n). `comm` may be null: one
  /// process.
  Fabric(mesh::Mesh mesh, comm::Communicator* comm, std::optional<Dtype> native = {});

  const mesh::Mesh& mesh() const { return mesh_; }
  /// The ranks of this process, ascending.
  const std::vector<i64>& own() const { return own_; }
  bool is_first_process() const { return comm_ == nullptr || comm_->rank() == 0; }
  comm::Communicator* comm() const { return comm_; }
  const Counts& counts() const { return counts_; }
  /// Bytes of a number that is N here, as this move sends it.
  template <class N>
  i64 number_bytes(plan::Move move) const;

  /// Runs and counts a collective. `value` has the parts of this process' ranks. A single process
  /// computes it where `bench` does.
  template <class N>
  void exchange(const ops::Exchange& exchange, i64 tokens, Placed<N>& value,
                kernels::Workbench& bench);
  /// Passes the results of one pipeline stage to the next. Every receiver of this process gets the
  /// part of the sender that differs from it only along the hand-off's axes. Counts the exchange.
  /// Throws kUnsupported if there is no such sender.
  template <class N>
  Placed<N> hand_over(const ops::Exchange& handoff, std::span<const i64> senders,
                      std::span<const i64> receivers, const Placed<N>& sent);
  /// Sums over the devices along the axes on which the value is Partial. Not counted.
  template <class N>
  void reduce(const std::vector<plan::Placement>& on, Placed<N>& value, kernels::Workbench& bench);
  /// Copies the first process' parts to every process.
  template <class N>
  void broadcast(Placed<N>& parts);
  std::string broadcast(std::string bytes);

 private:
  /// Returns the parts of this process and of all others.
  template <class N>
  Placed<N> with_others(const Placed<N>& own);
  /// Returns the process of a rank.
  int process_of(i64 rank) const;
  void count(const ops::Exchange& exchange, i64 elements);
  /// Returns the exchange by the communicator's own collectives; null if the sums are in the order
  /// of ranks.
  template <class N>
  NativeExchange* native() const;
  /// Returns the groups of these ranks along the axes, by their first ranks.
  std::vector<ExchangeGroup> groups_of(const std::vector<i64>& all,
                                       const std::vector<std::string>& along) const;
  /// As sum_over and gather_over.
  i64 sum_natively(const std::vector<std::string>& along, i64 tokens, Placed<float>& value);
  i64 gather_natively(const std::vector<std::string>& along, i64 tokens, Placed<float>& value);
  /// Both return the number of elements that the largest group jointly owns.
  template <class N>
  i64 sum_over(const std::vector<std::string>& along, Placed<N>& value, kernels::Workbench& bench);
  template <class N>
  i64 gather_over(const std::vector<std::string>& along, i64 tokens, Placed<N>& value,
                  kernels::Workbench& bench);
  bool is_alone() const { return comm_ == nullptr || comm_->size() == 1; }

  mesh::Mesh mesh_;
  comm::Communicator* comm_;
  std::vector<i64> own_;
  std::unique_ptr<NativeExchange> native_;  ///< null: sums in the order of ranks
  Counts counts_;
};

}  // namespace shardtool::engine
