#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/checked.h"
#include "lib/mesh/axis_ref.h"
#include "lib/mesh/mesh.h"

namespace shardtool::plan {

enum class CollectiveOp {
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kAllToAll,
  kBroadcast,
  kReduce,
  kPermute,  ///< every device sends its whole part to one other
};
/// Formats as "all_gather", ...
std::string_view to_string(CollectiveOp op);
std::optional<CollectiveOp> parse_collective_op(std::string_view name);

/// Devices that take part in a collective, spread evenly over the domains of the fabric.
struct Group {
  i64 devices = 1;
  i64 nodes = 1;  ///< domains that it spans, at most `devices`

  bool operator==(const Group&) const = default;
};

/// Group of mesh devices that differ only along `over`. Ranks fill domains of `domain` devices one
/// after another, each with as many whole blocks of the mesh's inner axes as fit: with ep=32 inside
/// of pp=8, domains of 72 devices have 64 ranks. `nodes` is that of the group that spans most.
/// Throws the errors of mesh::extent. O(devices).
Group group_along(const mesh::Mesh& mesh, const mesh::Over& over, i64 domain);

/// One collective of every device of a group. The payload S is, in bytes on one device:
///   all_gather             the gathered result      reduce_scatter      the input
///   all_reduce             the buffer               all_to_all          the parts for all devices
///   broadcast, reduce      the buffer               permute             the part
/// nccl-tests uses the same convention (PERFORMANCE.md).
struct Collective {
  CollectiveOp op = CollectiveOp::kAllReduce;
  Group group;
  i64 payload_bytes = 0;
  /// Bytes that a device sends to other nodes in an all_to_all. Without a value it sends every
  /// device there its own part.
  std::optional<i64> network_bytes = std::nullopt;
};

/// Bytes that the busiest device sends, as a fraction of the payload: 2(n-1)/n for all_reduce,
/// (n-1)/n for the other three of the first four, 1 for the rest; 0 for one device.
double bus_factor(CollectiveOp op, i64 devices);

/// Bytes that the busiest device sends: ceil(payload * bus_factor), exact.
i64 wire_bytes(const Collective& collective);

/// Expected number of different devices with a token's `top_k` experts, over uniform choices of
/// experts; the first devices have one more expert if the division is uneven:
/// n (1 - C(E - E/n, k) / C(E, k)). Requires 1 <= top_k <= experts.
double expected_destinations(i64 experts, i64 top_k, i64 devices);

/// Returns the all_to_all that sends tokens, `bytes` per device, to the expected devices of their
/// experts, or back. A token goes to every device once, and through the network to every other node
/// once, where devices hand it on: as DeepEP and HybridEP send, which engines and Megatron use.
Collective dispatch(i64 experts, i64 top_k, const Group& group, i64 bytes);

}  // namespace shardtool::plan
