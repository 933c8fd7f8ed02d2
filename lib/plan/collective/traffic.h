#pragma once

#include <vector>

#include "lib/plan/holders.h"
#include "lib/plan/read_requests.h"

namespace shardtool::plan {

/// The place of tensors that no device has: the files of a checkpoint.
inline constexpr i64 kStorage = -1;

/// Bytes of one tensor that one device sends to another.
struct Transfer {
  i64 from = 0;  ///< a rank, or kStorage
  i64 to = 0;
  i64 bytes = 0;

  bool operator==(const Transfer&) const = default;
};

/// What one device reads for itself when a tensor is in storage.
struct Load {
  i64 to = 0;
  Reads reads;

  bool operator==(const Load&) const = default;
};

/// What it takes to bring one tensor from its holders to those that want it; bytes. Sums are over
/// the devices that want it, padding excluded.
///
/// T1 total = kept + moved   T2 moved = sum of the transfers' bytes = lower_bound
/// T3 inter_node <= between_nodes <= between_nodes_equal <= moved
struct Traffic {
  i64 total = 0;  ///< wanted
  i64 kept = 0;   ///< of these, what a device has already
  i64 moved = 0;  ///< of these, what it has not
  /// That somebody wants, each once: what a copy through the files of one machine reads.
  i64 wanted_once = 0;
  /// Sum over devices of |wanted| - |wanted and had|, each a product over the axes: what no
  /// plan can do without.
  i64 lower_bound = 0;
  /// What it takes when every device that lacks anything first puts the whole tensor together.
  i64 gather_first = 0;
  /// Bytes that must enter a node from outside, each once per node, with copies made inside.
  i64 inter_node = 0;
  i64 between_nodes = 0;  ///< of moved, what these transfers carry from node to node
  /// The same if every device that has something sent an equal part of it, near or far.
  i64 between_nodes_equal = 0;
  Reads reads;                      ///< in the arrays of the sources, each box once
  i64 write_segments = 0;           ///< contiguous runs in the arrays of the destinations
  std::vector<Transfer> transfers;  ///< ascending by (from, to); none of 0 bytes
  std::vector<Load> loads;          ///< from storage alone; ascending by device
};

/// The direct plan: every device gets exactly what it lacks, from those of its node that have it,
/// and from other nodes where none has. What several of these have is sent by all of them in equal
/// parts (to within one element): on one node the least that the busiest of them can send. Ranks on
/// both sides are the same devices; nodes are runs of `node_size` of them. Reads go over gaps of up
/// to `most_gap` bytes.
/// Requires equal shapes and parts of whole bytes. Throws kCoverage when nobody has what somebody
/// wants, kLimit on overflow. Work is per box of the join and holder of it.
Traffic traffic(const Holders& from, const Holders& to, int bits, i64 node_size,
                i64 most_gap = kReadThrough);

/// Adds to overlap[wanted * n_devices + having] the bytes of one tensor that device `having` has of
/// what rank `wanted` of the destinations wants.
void add_overlaps(const Holders& from, const Holders& to, int bits, i64 count, i64 n_devices,
                  std::vector<i64>& overlap);

}  // namespace shardtool::plan
