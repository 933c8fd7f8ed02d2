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
  int bits = 0;           ///< bits per element
  Holders from;
  Holders to;
};

struct TrafficOptions {
  i64 from_devices = 0;  ///< 0: the source is storage
  i64 to_devices = 1;
  i64 node_size = 8;            ///< devices of one node
  i64 most_gap = kReadThrough;  ///< bytes that are cheaper to read than to skip
  /// Limits of devices: above best_numbering_limit the best renumbering (worst case cubic) takes
  /// too long, and the largest overlaps are taken first; above numbering_limit even the matrix of
  /// overlaps is too expensive.
  i64 best_numbering_limit = 1024;
  i64 numbering_limit = 4096;
  Boxes boxes = Boxes::kCounted;  ///< of the groups' traffic
};

/// Tensors with the same holders on both sides: `each` is the traffic of every one of them.
struct ReshardGroup {
  std::vector<size_t> tensors;  ///< ascending
  Traffic each;
};

/// Bytes that one device sends, receives and reads, and its peak memory.
struct RankLoad {
  i64 rank = 0;
  i64 send = 0;
  i64 receive = 0;
  i64 send_far = 0;  ///< of send, to other nodes
  i64 receive_far = 0;
  Reads load = {};  ///< from storage: its own reads
  i64 peak_bytes = 0;
};

/// Reassignment of the destination's ranks to devices that keeps as many bytes as possible in
/// place.
struct Renumbering {
  std::vector<i64> device_of_rank;  ///< distinct device per rank of the destination
  i64 bytes_moved = 0;              ///< with this numbering
  i64 lower_bound = 0;  ///< no numbering moves fewer; equals bytes_moved up to the first limit
};

/// Data that a reshard moves. Byte counts are sums over destination ranks.
///
/// R1 bytes_total = bytes_kept + bytes_moved   R2 bytes_moved = lower_bound: the plan is direct
/// R3 the sends and the receives of all devices each add up to bytes_moved, except that no device
/// sends when the source is storage
struct ReshardPlan {
  i64 changes = 0;  ///< tensors with moved bytes
  i64 bytes_total = 0;
  i64 bytes_kept = 0;
  i64 bytes_moved = 0;
  i64 wanted_once = 0;  ///< bytes that some rank needs, each counted once
  i64 lower_bound = 0;
  i64 gather_first_bytes = 0;
  i64 inter_node_bytes = 0;     ///< bytes that must enter a node, each once, with copies inside
  i64 between_nodes_bytes = 0;  ///< bytes of these transfers from node to node
  i64 between_nodes_equal = 0;  ///< same without preferring senders of the own node
  i64 transfers = 0;            ///< one per tensor, sender and receiver
  i64 pairs = 0;  ///< communicating device pairs: messages when all tensors travel together
  Reads reads;    ///< of the source, every part once
  Reads loads;    ///< from storage: sum over the devices' own reads
  i64 write_segments = 0;
  bool from_storage = false;
  std::vector<RankLoad> per_rank;          ///< every device of either side, ascending
  std::optional<Renumbering> renumbering;  ///< nullopt from storage, or above the last limit
  std::vector<size_t> order;         ///< of the groups: tensors one by one, with the lowest peak
  i64 peak_bytes = 0;                ///< of the busiest device, in that order
  i64 peak_bound = 0;                ///< lower bound for any order
  i64 peak_rank = 0;                 ///< the busiest device
  i64 begin_bytes = 0;               ///< its memory before the first tensor moves
  std::vector<MemoryLevel> levels;   ///< its memory while the groups move, in `order`
  std::vector<ReshardGroup> groups;  ///< by their first tensor
  std::vector<size_t> group_of_tensor;

  /// bytes_moved / lower_bound - 1; 0 if no bytes have to move.
  double gap() const;
};

/// Plans every tensor's direct move. Work is per distinct pair of layouts, and linear in the number
/// of tensors. Throws kCoverage with the tensor's name when a needed part has no source; kLimit on
/// overflow. Requires ranks below the numbers of devices.
ReshardPlan plan_reshard(std::span<const ReshardTensor> tensors, const TrafficOptions& options);

}  // namespace shardtool::plan
