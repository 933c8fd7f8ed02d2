#include "lib/plan/placement/action_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/error.h"

namespace shardtool::plan {
namespace {

using Kind = Placement::Kind;

bool is_older(Parity parity) {
  return parity == Parity::kA || parity == Parity::kB || parity == Parity::kC;
}

i64 axis_size(const ActionSet& set, size_t mesh_axis) {
  return set.mesh.axes()[mesh_axis].size;
}

/// Number of parts into which mesh axes other than `mesh_axis` cut tensor axis d.
i64 other_parts(const ActionSet& set, const Operand& operand, int d, size_t mesh_axis) {
  i64 product = 1;
  for (size_t a = 0; a < operand.on.size(); ++a) {
    if (a != mesh_axis && operand.on[a] == Placement::sharded(d)) product *= axis_size(set, a);
  }
  return product;
}

bool any_cut_along(const ActionSet& set, int d, size_t mesh_axis) {
  return std::any_of(set.operands.begin(), set.operands.end(), [&](const Operand& operand) {
    return operand.on[mesh_axis] == Placement::sharded(d);
  });
}

/// Parts of tensor axis d if they are unequal and the generation uses them; else empty.
const std::vector<i64>& unequal_parts(const ActionSet& set, const Operand& operand, size_t d) {
  static const std::vector<i64> kNone;
  return is_older(set.parity) && d < operand.parts.size() ? operand.parts[d] : kNone;
}

bool has_enough_parts(const ActionSet& set, const Operand& operand, const Placement& needed,
                      size_t mesh_axis) {
  if (!needed.is(Kind::kSharded) || operand.on[mesh_axis] == needed) return true;
  if (needed.axis >= static_cast<int>(operand.shape.size())) return false;
  const i64 extent = operand.shape[static_cast<size_t>(needed.axis)];
  if (extent == 1) return false;
  if (is_older(set.parity) && any_cut_along(set, needed.axis, mesh_axis)) return true;
  const auto& parts = unequal_parts(set, operand, static_cast<size_t>(needed.axis));
  if (!parts.empty()) {
    return *std::min_element(parts.begin(), parts.end()) >= axis_size(set, mesh_axis);
  }
  return extent >= axis_size(set, mesh_axis) * other_parts(set, operand, needed.axis, mesh_axis);
}

/// Bytes of the whole tensor; kA to kC take the first of unequal parts as the size of all.
i64 operand_bytes(const ActionSet& set, const Operand& operand) {
  Shape shape = operand.shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto& parts = unequal_parts(set, operand, d);
    if (!parts.empty()) shape[d] = parts.front() * std::ssize(parts);
  }
  const auto elements = element_count(shape);
  const auto bytes = elements ? checked_mul(*elements, operand.element_bytes) : std::nullopt;
  if (!bytes) throw Error(ErrorCode::kLimit, "the bytes of an operand are above 2^63");
  return *bytes;
}

/// True if a row averages parts of different sizes.
bool averages_unequal_parts(const ActionSet& set, const OpRow& row, size_t mesh_axis) {
  if (row.result != Placement::partial(ReduceOp::kAvg)) return false;
  for (size_t i = 0; i < row.operands.size(); ++i) {
    const Placement& needed = row.operands[i];
    if (!needed.is(Kind::kSharded)) continue;
    const Operand& operand = set.operands[i];
    const i64 count = axis_size(set, mesh_axis) * other_parts(set, operand, needed.axis, mesh_axis);
    if (operand.shape[static_cast<size_t>(needed.axis)] % count != 0) return true;
  }
  return false;
}

/// Ring formula on the bytes of the whole tensor.
i64 ring_bytes(Move move, i64 n, i64 bytes, Parity parity) {
  const bool local = move == Move::kSlice || move == Move::kKeepOne;
  if (local) return parity == Parity::kD && n > 1 ? bytes / n / 64 : 0;
  if (move == Move::kNothing || n == 1) return 0;
  const i64 once = bytes / n * (n - 1) + bytes % n * (n - 1) / n;
  return move == Move::kAllReduce ? 2 * once : once;
}

i64 sum_of(const std::vector<AxisPrice>& prices) {
  i64 total = 0;
  for (const AxisPrice& price : prices) total += price.bytes;
  return total;
}

bool cuts_evenly(const ActionSet& set, const Operand& operand, const std::vector<Placement>& on) {
  for (size_t d = 0; d < operand.shape.size(); ++d) {
    i64 product = 1;
    for (size_t a = 0; a < on.size(); ++a) {
      if (on[a] == Placement::sharded(static_cast<int>(d))) product *= axis_size(set, a);
    }
    if (operand.shape[d] % product != 0) return false;
  }
  return true;
}

}  // namespace

ActionSet build_action_set(ActionSet all) {
  const auto fail = [&all](const std::string& why) {
    return Error(ErrorCode::kPlacement, fmt::format("{} cannot be placed: {}", all.op, why));
  };
  if (all.rows.empty()) throw fail("it has no rows");
  const size_t axes = all.mesh.axes().size();
  for (const Operand& operand : all.operands) {
    if (operand.on.size() != axes) throw fail("an operand lacks a placement per mesh axis");
  }
  for (const OpRow& row : all.rows) {
    if (row.operands.size() != all.operands.size()) throw fail("a row places other operands");
  }
  const OpRow whole{std::vector<Placement>(all.operands.size()), Placement::replicated()};
  std::erase_if(all.rows, [&](const OpRow& row) {
    for (size_t a = 0; a < axes; ++a) {
      if (is_feasible(all, row, a)) return false;
    }
    return true;
  });
  const bool is_there = std::find(all.rows.begin(), all.rows.end(), whole) != all.rows.end();
  if (!is_there && all.parity != Parity::kD) all.rows.push_back(whole);
  return all;
}

std::string_view to_string(Feasibility feasibility) {
  constexpr auto kTexts = std::to_array<std::string_view>(
      {"", "no move leads there", "fewer shards than ranks", "an average of unequal shards",
       "the result has fewer shards than ranks"});
  return kTexts[static_cast<size_t>(feasibility)];
}

std::optional<Redistribution> path_of(const ActionSet& set, size_t operand,
                                      const std::vector<Placement>& to) {
  const Operand& moved = set.operands[operand];
  const bool even = cuts_evenly(set, moved, moved.on) && cuts_evenly(set, moved, to);
  if (set.parity != Parity::kExact || !even) return std::nullopt;
  const int rank = static_cast<int>(moved.shape.size());
  // redistribute has no path for a kept copy (R -> P), which moves no bytes.
  return redistribute(set.mesh, moved.shape, in_mesh_order(moved.on, rank),
                      in_mesh_order(to, rank));
}

/// kExact: each axis with the bytes that its group owns; else with those of the whole tensor.
std::vector<AxisPrice> axis_prices(const ActionSet& set, size_t operand,
                                   const std::vector<Placement>& to) {
  const Operand& moved = set.operands[operand];
  std::vector<AxisPrice> prices;
  std::vector<Placement> at = moved.on;
  for (size_t a = 0; a < to.size(); ++a) {
    AxisPrice price{a, operand_bytes(set, moved), 0};
    const Move move = move_between(at[a], to[a]);
    if (set.parity != Parity::kExact) {
      price.bytes = ring_bytes(move, axis_size(set, a), price.owned, set.parity);
      prices.push_back(price);
      continue;
    }
    for (size_t other = 0; other < at.size(); ++other) {
      if (other != a && at[other].is(Kind::kSharded))
        price.owned = ceil_div(price.owned, axis_size(set, other));
    }
    const auto collective = collective_for(move, {axis_size(set, a), 1}, price.owned);
    if (collective) price.bytes = wire_bytes(*collective);
    at[a] = to[a];
    prices.push_back(price);
  }
  return prices;
}

bool is_feasible(const ActionSet& set, const OpRow& row, size_t mesh_axis) {
  return feasibility(set, row, mesh_axis) == Feasibility::kPossible;
}

Feasibility feasibility(const ActionSet& set, const OpRow& row, size_t mesh_axis) {
  for (size_t i = 0; i < row.operands.size(); ++i) {
    const Operand& operand = set.operands[i];
    const Placement& needed = row.operands[i];
    const Move move = move_between(operand.on[mesh_axis], needed);
    const bool keeps = move == Move::kKeepOne && set.parity != Parity::kD;
    if (move == Move::kImpossible || keeps) return Feasibility::kNoMove;
    if (!has_enough_parts(set, operand, needed, mesh_axis)) return Feasibility::kTooFewParts;
  }
  if (set.parity == Parity::kExact && averages_unequal_parts(set, row, mesh_axis)) {
    return Feasibility::kUnequalAverage;
  }
  if (set.result_shape.empty() || !row.result.is(Kind::kSharded)) return Feasibility::kPossible;
  const i64 extent = set.result_shape.at(static_cast<size_t>(row.result.axis));
  const bool fits = extent >= axis_size(set, mesh_axis);
  return fits ? Feasibility::kPossible : Feasibility::kResultTooSmall;
}

i64 price_along(const ActionSet& set, const OpRow& row, size_t mesh_axis) {
  i64 total = 0;
  for (size_t i = 0; i < row.operands.size(); ++i) {
    const Operand& operand = set.operands[i];
    total += ring_bytes(move_between(operand.on[mesh_axis], row.operands[i]),
                        axis_size(set, mesh_axis), operand_bytes(set, operand), set.parity);
  }
  return total;
}

i64 price_of(const ActionSet& set, const std::vector<size_t>& rows) {
  i64 total = 0;
  if (set.parity != Parity::kExact) {
    for (size_t a = 0; a < rows.size(); ++a) total += price_along(set, set.rows[rows[a]], a);
    return total;
  }
  for (size_t i = 0; i < set.operands.size(); ++i) {
    std::vector<Placement> to;
    for (const size_t row : rows) to.push_back(set.rows[row].operands[i]);
    total += price_of_operand(set, i, to);
  }
  return total;
}

i64 price_of_operand(const ActionSet& set, size_t operand, const std::vector<Placement>& to) {
  if (set.operands[operand].on == to) return 0;
  const auto way = path_of(set, operand, to);
  if (!way) return sum_of(axis_prices(set, operand, to));
  return ceil_div(way->elements * set.operands[operand].element_bytes, set.mesh.size());
}

i64 operand_bytes(const ActionSet& set, const std::vector<size_t>& rows) {
  i64 total = 0;
  for (size_t i = 0; i < set.operands.size(); ++i) {
    i64 product = 1;
    for (size_t a = 0; a < rows.size(); ++a) {
      if (set.rows[rows[a]].operands[i].is(Kind::kSharded)) product *= axis_size(set, a);
    }
    total += ceil_div(operand_bytes(set, set.operands[i]), product);
  }
  return total;
}

i64 moved_operands(const ActionSet& set, const std::vector<size_t>& rows) {
  i64 moved = 0;
  for (size_t i = 0; i < set.operands.size(); ++i) {
    bool moves = false;
    for (size_t a = 0; a < rows.size(); ++a) {
      moves = moves || set.operands[i].on[a] != set.rows[rows[a]].operands[i];
    }
    moved += static_cast<i64>(moves);
  }
  return moved;
}

}  // namespace shardtool::plan
