#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lib/plan/collective/traffic.h"
#include "lib/plan/schedule.h"

namespace shardtool::plan {

/// One tensor of a reshard.
struct ReshardTensor {
  std::string_view name;  ///< for messages
  int bits = 0;           ///< of one element
  Holders from;
  Holders to;
};

struct ReshardOptions {
  i64 from_devices = 0;  ///< 0: the source is storage
  i64 to_devices = 1;
  i64 node_size = 8;            ///< devices of one node
  i64 most_gap = kReadThrough;  ///< bytes that are cheaper to read than to skip
  /// Above so many devices the best renumbering is not worth its time, cubic at worst, and the
  /// largest overlaps are taken first; above so many not even the matrix of overlaps is.
  i64 best_numbering_limit = 1024;
  i64 numbering_limit = 4096;
};

/// Tensors with the same holders on both sides: what is said of one holds for each.
struct ReshardGroup {
  std::vector<size_t> tensors;  ///< ascending
  Traffic each;
};

/// What one device sends, receives and reads, and the most that it holds on the way.
struct RankLoad {
  i64 rank = 0;
  i64 send = 0;
  i64 receive = 0;
  i64 send_far = 0;  ///< of send, to other nodes
  i64 receive_far = 0;
  Reads load = {};  ///< from storage: what it reads for itself
  i64 peak_bytes = 0;
};

/// The destination's ranks on other devices, so that as much as possible stays where it is.
struct Renumbering {
  std::vector<i64> device_of_rank;  ///< per rank of the destination: a device of its own
  i64 bytes_moved = 0;              ///< then
  i64 lower_bound = 0;              ///< no numbering needs fewer; bytes_moved up to the first limit
};

/// What a reshard moves. Byte counts are sums over destination ranks.
///
/// R1 bytes_total = bytes_kept + bytes_moved   R2 bytes_moved = lower_bound: the plan is direct
/// R3 the sends and the receives of all devices add up to bytes_moved each, unless the source is
///    storage: then nobody sends
struct ReshardPlan {
  i64 changes = 0;  ///< tensors of which something moves
  i64 bytes_total = 0;
  i64 bytes_kept = 0;
  i64 bytes_moved = 0;
  i64 wanted_once = 0;  ///< bytes that some rank wants, each once
  i64 lower_bound = 0;
  i64 gather_first_bytes = 0;
  i64 inter_node_bytes = 0;     ///< that must enter a node, each once, with copies made inside
  i64 between_nodes_bytes = 0;  ///< that these transfers carry from node to node
  i64 between_nodes_equal = 0;  ///< the same without a preference for senders of the own node
  i64 transfers = 0;            ///< one per tensor, sender and receiver
  i64 pairs = 0;                ///< of devices that talk: messages when all tensors travel together
  Reads reads;                  ///< of the source, every part once
  Reads loads;                  ///< from storage: of every device for itself, together
  i64 write_segments = 0;
  bool from_storage = false;
  std::vector<RankLoad> per_rank;          ///< of every device of either side, ascending
  std::optional<Renumbering> renumbering;  ///< none from storage, or above the last limit
  std::vector<size_t> order;  ///< of the groups: tensors one after the other, with the least peak
  i64 peak_bytes = 0;         ///< of the busiest device, in that order
  i64 peak_bound = 0;         ///< no order can have less
  std::vector<ReshardGroup> groups;  ///< by their first tensor
  std::vector<size_t> group_of_tensor;

  /// bytes_moved / lower_bound - 1; 0 when nothing has to move.
  double gap() const;
};

/// Plans every tensor's direct move. Work is per distinct pair of layouts, and linear in the number
/// of tensors. Throws kCoverage with the tensor's name when nobody has what is wanted; kLimit on
/// overflow. Requires ranks below the numbers of devices.
ReshardPlan plan_reshard(std::span<const ReshardTensor> tensors, const ReshardOptions& options);

}  // namespace shardtool::plan
