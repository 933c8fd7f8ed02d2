#pragma once

#include <vector>

#include "lib/base/shape.h"
#include "lib/plan/holders.h"
#include "lib/plan/read_requests.h"

namespace shardtool::plan {

/// Sender of tensors that no device has: the files of a checkpoint.
inline constexpr i64 kStorage = -1;

/// Bytes of one tensor that one device sends to another.
struct Transfer {
  i64 from = 0;  ///< a rank, or kStorage
  i64 to = 0;
  i64 bytes = 0;

  bool operator==(const Transfer&) const = default;
};

/// Box of a tensor that one transfer carries. Places are local: in the row-major part of the sender
/// (in storage, the whole tensor) and in that of the receiver.
struct TransferBox {
  size_t transfer = 0;  ///< index into Traffic::transfers
  Shape from;           ///< index of its first element in the sender's part
  Shape to;             ///< same in the receiver's part
  Shape sizes;
  i64 from_offset = 0;  ///< of the first element, in bytes
  i64 to_offset = 0;
};

/// Reads of one device when a tensor is in storage.
struct Load {
  i64 to = 0;
  Reads reads;

  bool operator==(const Load&) const = default;
};

/// Traffic that brings one tensor from its source holders to its destination holders, in bytes.
/// Sums are over the destination devices, padding excluded.
///
/// T1 total = kept + moved   T2 moved = sum of the transfers' bytes = lower_bound
/// T3 inter_node <= between_nodes <= between_nodes_equal <= moved
/// T4 with boxes, those of one transfer are its bytes, and those to one device are disjoint
struct Traffic {
  i64 total = 0;  ///< needed
  i64 kept = 0;   ///< of these, already on the device
  i64 moved = 0;  ///< of these, missing on the device
  /// Bytes needed by any device, each counted once: the amount that a copy through the files of one
  /// machine reads.
  i64 wanted_once = 0;
  /// Sum over devices of |needed| - |needed and present|, each a product over the axes: the minimum
  /// for any plan.
  i64 lower_bound = 0;
  /// Bytes if every device with a missing part first gathers the whole tensor.
  i64 gather_first = 0;
  /// Bytes that must enter a node from outside, each once per node, with copies inside.
  i64 inter_node = 0;
  i64 between_nodes = 0;  ///< of moved, the bytes of these transfers between nodes
  /// Same if all devices that have a part sent equal shares of it, near or far.
  i64 between_nodes_equal = 0;
  Reads reads;                      ///< in the arrays of the sources, each box once
  i64 write_segments = 0;           ///< contiguous runs in the arrays of the destinations
  std::vector<Transfer> transfers;  ///< ascending by (from, to); without transfers of 0 bytes
  std::vector<Load> loads;          ///< only from storage; ascending by device
  std::vector<TransferBox> boxes;   ///< if they are listed; ascending by transfer
};

/// Extent of what traffic() says of transfers: their bytes alone, or their boxes, too.
enum class Boxes { kCounted, kListed };

/// Computes the direct plan: every device gets exactly its missing part, from devices of its node
/// that have it, else from other nodes. If several of these have a part, all of them send equal
/// shares (to within one element): on one node the minimum for the busiest sender. Ranks on both
/// sides are the same devices; nodes are ranges of `node_size` of them. Reads span gaps of up to
/// `most_gap` bytes.
/// Requires equal shapes and parts of whole bytes. Throws kCoverage when a needed part has no
/// source, kLimit on overflow. Work is per box of the join and holder of it.
Traffic traffic(const Holders& from, const Holders& to, int bits, i64 node_size,
                i64 most_gap = kReadThrough, Boxes boxes = Boxes::kCounted);

/// Adds to overlap[wanted * n_devices + having] the bytes of one tensor that rank `wanted` of the
/// destinations needs and device `having` has.
void add_overlaps(const Holders& from, const Holders& to, int bits, i64 count, i64 n_devices,
                  std::vector<i64>& overlap);

}  // namespace shardtool::plan
