#include "lib/plan/collective/collective.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "lib/base/error.h"

namespace shardtool::plan {
namespace {

constexpr auto kNames = std::to_array<std::pair<CollectiveOp, std::string_view>>({
    {CollectiveOp::kAllGather, "all_gather"},
    {CollectiveOp::kReduceScatter, "reduce_scatter"},
    {CollectiveOp::kAllReduce, "all_reduce"},
    {CollectiveOp::kAllToAll, "all_to_all"},
    {CollectiveOp::kBroadcast, "broadcast"},
    {CollectiveOp::kReduce, "reduce"},
    {CollectiveOp::kPermute, "permute"},
});

/// bus_factor as a fraction.
struct Fraction {
  i64 numerator = 0;
  i64 denominator = 1;
};

Fraction sent_share(CollectiveOp op, i64 n) {
  if (n < 2) return {0, 1};
  switch (op) {
    case CollectiveOp::kAllReduce:
      return {2 * (n - 1), n};
    case CollectiveOp::kAllGather:
    case CollectiveOp::kReduceScatter:
    case CollectiveOp::kAllToAll:
      return {n - 1, n};
    case CollectiveOp::kBroadcast:
    case CollectiveOp::kReduce:
    case CollectiveOp::kPermute:
      return {1, 1};
  }
  return {};
}

i64 require_fits(std::optional<i64> bytes) {
  if (!bytes) throw Error(ErrorCode::kLimit, "the bytes of a collective are above 2^63");
  return *bytes;
}

/// A number for the coordinate of a device without its digits along `over`: equal within one group
/// alone.
i64 group_of(const mesh::Mesh& mesh, const mesh::Over& over, i64 rank) {
  i64 outside = 0;
  for (const mesh::MeshAxis& axis : mesh.axes()) {
    i64 index = mesh.index_on(axis.name, rank);
    for (const mesh::AxisRef& ref : over) {
      if (ref.axis != axis.name) continue;
      const i64 step = ref.whole() ? 1 : axis.size / (ref.pre * ref.size);
      index -= mesh::index_along(mesh, ref, rank) * step;
    }
    outside = outside * axis.size + index;
  }
  return outside;
}

/// Returns the devices of a domain that a mesh uses: whole blocks of its inner axes.
i64 used_of_domain(const mesh::Mesh& mesh, i64 domain) {
  i64 block = 1;
  for (size_t a = mesh.axes().size(); a-- > 0;) {
    if (block * mesh.axes()[a].size > domain) break;
    block *= mesh.axes()[a].size;
  }
  return domain / block * block;
}

/// Probability that no expert of a token's `top_k` of `experts` is among `here` of them: C(experts
/// - here, k) / C(experts, k), factor by factor.
double none_among(i64 here, i64 experts, i64 top_k) {
  double none = 1;
  for (i64 i = 0; i < top_k; ++i) {
    none *= static_cast<double>(std::max<i64>(experts - here - i, 0)) /
            static_cast<double>(experts - i);
  }
  return none;
}

}  // namespace

std::string_view to_string(CollectiveOp op) {
  return std::find_if(kNames.begin(), kNames.end(),
                      [op](const auto& row) { return row.first == op; })
      ->second;
}

std::optional<CollectiveOp> parse_collective_op(std::string_view name) {
  for (const auto& [op, known] : kNames) {
    if (known == name) return op;
  }
  return std::nullopt;
}

Group group_along(const mesh::Mesh& mesh, const mesh::Over& over, i64 domain) {
  const i64 used = used_of_domain(mesh, domain);
  std::vector<std::pair<i64, i64>> nodes_of_groups;
  nodes_of_groups.reserve(static_cast<size_t>(mesh.size()));
  for (i64 rank = 0; rank < mesh.size(); ++rank)
    nodes_of_groups.emplace_back(group_of(mesh, over, rank), rank / used);
  std::ranges::sort(nodes_of_groups);
  nodes_of_groups.erase(std::unique(nodes_of_groups.begin(), nodes_of_groups.end()),
                        nodes_of_groups.end());
  Group group{mesh::extent(mesh, over), 1};
  i64 run = 0;
  i64 last = -1;
  for (const auto& [outside, node] : nodes_of_groups) {
    run = last == outside ? run + 1 : 1;
    last = outside;
    group.nodes = std::max(group.nodes, run);
  }
  return group;
}

double bus_factor(CollectiveOp op, i64 devices) {
  const Fraction share = sent_share(op, devices);
  return static_cast<double>(share.numerator) / static_cast<double>(share.denominator);
}

i64 wire_bytes(const Collective& collective) {
  const Fraction share = sent_share(collective.op, collective.group.devices);
  // payload = q * n + r, so that no product exceeds twice the payload.
  const i64 quotient = collective.payload_bytes / share.denominator;
  const i64 rest = collective.payload_bytes % share.denominator;
  const auto whole = checked_mul(quotient, share.numerator);
  const auto part = checked_mul(rest, share.numerator);
  if (!whole || !part) return require_fits(std::nullopt);
  return require_fits(checked_add(*whole, ceil_div(*part, share.denominator)));
}

double expected_destinations(i64 experts, i64 top_k, i64 devices) {
  const i64 with_more = experts % devices;  // devices with one expert more than the others
  const i64 each = experts / devices;
  return static_cast<double>(with_more) * (1 - none_among(each + 1, experts, top_k)) +
         static_cast<double>(devices - with_more) * (1 - none_among(each, experts, top_k));
}

Collective dispatch(i64 experts, i64 top_k, const Group& group, i64 bytes) {
  const auto sent = [&](i64 places, double share) {
    const double each = expected_destinations(experts, top_k, places) * share;
    return static_cast<i64>(std::ceil(each * static_cast<double>(bytes)));
  };
  Collective collective{CollectiveOp::kAllToAll, group, sent(group.devices, 1)};
  if (group.nodes > 1) {
    const auto nodes = static_cast<double>(group.nodes);
    collective.network_bytes = sent(group.nodes, (nodes - 1) / nodes);
  }
  return collective;
}

}  // namespace shardtool::plan
