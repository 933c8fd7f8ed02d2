#include "lib/plan/placement/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "lib/base/error.h"

namespace shardtool::plan {

using Kind = Placement::Kind;

std::string_view to_string(ReduceOp op) {
  constexpr auto kNames = std::to_array<std::string_view>({"sum", "avg", "min", "max"});
  return kNames[static_cast<size_t>(op)];
}

std::string to_string(const Placement& placement) {
  switch (placement.kind) {
    case Kind::kReplicated:
      return "R";
    case Kind::kSharded:
      return fmt::format("S({})", placement.axis);
    case Kind::kPartial:
      return placement.op == ReduceOp::kSum ? "P" : fmt::format("P({})", to_string(placement.op));
    case Kind::kUnknown:
      return "U";
  }
  return "";
}

std::string_view to_string(Move move) {
  constexpr auto kNames =
      std::to_array<std::string_view>({"nothing", "slice", "keep_one", "all_gather", "all_to_all",
                                       "all_reduce", "reduce_scatter", "permute", "impossible"});
  return kNames[static_cast<size_t>(move)];
}

std::optional<CollectiveOp> collective_of(Move move) {
  switch (move) {
    case Move::kAllGather:
      return CollectiveOp::kAllGather;
    case Move::kAllToAll:
      return CollectiveOp::kAllToAll;
    case Move::kAllReduce:
      return CollectiveOp::kAllReduce;
    case Move::kReduceScatter:
      return CollectiveOp::kReduceScatter;
    case Move::kPermute:
      return CollectiveOp::kPermute;
    case Move::kNothing:
    case Move::kSlice:
    case Move::kKeepOne:
    case Move::kImpossible:
      return std::nullopt;
  }
  return std::nullopt;
}

Move move_between(const Placement& from, const Placement& to) {
  if (from == to) return Move::kNothing;
  if (from.is(Kind::kUnknown) || to.is(Kind::kUnknown)) return Move::kImpossible;
  if (to.is(Kind::kPartial)) {
    const bool keeps = from.is(Kind::kReplicated) && to.op == ReduceOp::kSum;
    return keeps ? Move::kKeepOne : Move::kImpossible;
  }
  if (to.is(Kind::kReplicated)) {
    return from.is(Kind::kSharded) ? Move::kAllGather : Move::kAllReduce;
  }
  if (from.is(Kind::kReplicated)) return Move::kSlice;
  return from.is(Kind::kSharded) ? Move::kAllToAll : Move::kReduceScatter;
}

std::optional<Collective> collective_for(Move move, Group group, i64 bytes) {
  const auto op = collective_of(move);
  if (!op || group.devices < 2) return std::nullopt;
  const bool has_part = move == Move::kAllToAll || move == Move::kPermute;
  return Collective{*op, group, has_part ? ceil_div(bytes, group.devices) : bytes};
}

Placements in_mesh_order(std::vector<Placement> on, int rank) {
  Placements placements{std::move(on), std::vector<std::vector<int>>(static_cast<size_t>(rank))};
  for (size_t a = 0; a < placements.on.size(); ++a) {
    const Placement& placement = placements.on[a];
    if (!placement.is(Kind::kSharded)) continue;
    if (placement.axis < 0 || placement.axis >= rank) {
      throw Error(ErrorCode::kShapeMismatch,
                  fmt::format("{} cuts axis {} of a tensor of {} axes", to_string(placement),
                              placement.axis, rank));
    }
    placements.order[static_cast<size_t>(placement.axis)].push_back(static_cast<int>(a));
  }
  return placements;
}

Placements replicated(const mesh::Mesh& mesh, int rank) {
  return in_mesh_order(std::vector<Placement>(mesh.axes().size()), rank);
}

i64 parts(const Placements& placements, const mesh::Mesh& mesh, int d) {
  i64 product = 1;
  for (const int a : placements.order[static_cast<size_t>(d)]) {
    product *= mesh.axes()[static_cast<size_t>(a)].size;
  }
  return product;
}

std::string to_string(const Placements& placements, const mesh::Mesh& mesh) {
  std::vector<std::string> axes;
  for (const std::vector<int>& order : placements.order) {
    std::vector<std::string_view> names;
    for (const int a : order) names.push_back(mesh.axes()[static_cast<size_t>(a)].name);
    axes.push_back(fmt::format("[{}]", fmt::join(names, ", ")));
  }
  std::string text = fmt::format("{}", fmt::join(axes, ", "));
  for (size_t a = 0; a < placements.on.size(); ++a) {
    const Placement& placement = placements.on[a];
    if (placement.is(Kind::kReplicated) || placement.is(Kind::kSharded)) continue;
    text += fmt::format("  {} on {}", to_string(placement), mesh.axes()[a].name);
  }
  return text;
}

}  // namespace shardtool::plan
