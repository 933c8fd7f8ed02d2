#include "lib/plan/placement/solver.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <tuple>

#include "lib/base/error.h"

namespace shardtool::plan {
namespace {

using Rows = std::vector<size_t>;

Action action_of(const ActionSet& set, Rows rows) {
  Action action{std::move(rows), 0, {}};
  action.bytes = price_of(set, action.rows);
  for (const size_t row : action.rows) action.results.push_back(set.rows[row].result);
  return action;
}

bool is_feasible_everywhere(const ActionSet& set, const Rows& rows) {
  for (size_t a = 0; a < rows.size(); ++a) {
    if (!is_feasible(set, set.rows[rows[a]], a)) return false;
  }
  return true;
}

/// Visits every choice of one row per mesh axis, the last axis fastest, until `visit` returns true.
void for_each_choice(const ActionSet& set, const std::function<bool(const Rows&)>& visit) {
  Rows rows(set.mesh.axes().size(), 0);
  while (!visit(rows)) {
    size_t a = rows.size();
    while (a > 0 && ++rows[a - 1] == set.rows.size()) rows[--a] = 0;
    if (a == 0) return;
  }
}

/// First feasible choice whose moves along every axis are all among `moves`.
std::optional<Rows> first_with(const ActionSet& set, const AllowedMoves& moves) {
  std::optional<Rows> found;
  for_each_choice(set, [&](const Rows& rows) {
    if (!is_feasible_everywhere(set, rows)) return false;
    for (size_t a = 0; a < rows.size(); ++a) {
      for (size_t i = 0; i < set.operands.size(); ++i) {
        const Move move = move_between(set.operands[i].on[a], set.rows[rows[a]].operands[i]);
        if (!moves.contains(move)) return false;
      }
    }
    found = rows;
    return true;
  });
  return found;
}

Error refusal(const ActionSet& set, const std::string& why) {
  Error error(ErrorCode::kPlacement, fmt::format("{}: {}", set.op, why));
  for (const Operand& operand : set.operands) {
    std::vector<std::string> on;
    for (size_t a = 0; a < operand.on.size(); ++a) {
      on.push_back(fmt::format("{}:{}", set.mesh.axes()[a].name, to_string(operand.on[a])));
    }
    error.note(operand.name,
               fmt::format("{} {}", shardtool::to_string(operand.shape), fmt::join(on, " ")));
  }
  return error;
}

}  // namespace

AllowedMoves AllowedMoves::partials_only() {
  AllowedMoves moves = none();
  moves.all_reduce = true;
  return moves;
}

AllowedMoves AllowedMoves::none() {
  return {false, false, false, false, false, false};
}

bool AllowedMoves::contains(Move move) const {
  switch (move) {
    case Move::kNothing:
      return true;
    case Move::kSlice:
      return slice;
    case Move::kKeepOne:
      return keep_one;
    case Move::kAllGather:
      return all_gather;
    case Move::kAllToAll:
      return all_to_all;
    case Move::kAllReduce:
      return all_reduce;
    case Move::kReduceScatter:
      return reduce_scatter;
    case Move::kPermute:
    case Move::kImpossible:
      return false;
  }
  return false;
}

bool GreedyReshard::is_allowed(const ActionSet& set, const OpRow& row, size_t mesh_axis) const {
  for (size_t i = 0; i < row.operands.size(); ++i) {
    const Move move = move_between(set.operands[i].on[mesh_axis], row.operands[i]);
    if (!allowed_.contains(move)) return false;
  }
  return is_feasible(set, row, mesh_axis);
}

void GreedyReshard::fail(const ActionSet& set) const {
  if (budget_bytes_) {
    const GreedyReshard unbounded(allowed_);
    const Action action = unbounded.choose(set);
    throw refusal(set, fmt::format("no way to run it fits {} bytes of operands", *budget_bytes_))
        .note("cheapest", fmt::format("{} bytes", operand_bytes(set, action.rows)));
  }
  throw refusal(set, "no allowed move brings the operands to placements that fit")
      .help(
          "allow reduce_scatter of Partial operands (allow_partial_to_sharded), or move an operand "
          "beforehand");
}

Action GreedyReshard::jointly(const ActionSet& set) const {
  const bool first_wins = set.parity == Parity::kA || set.parity == Parity::kB;
  std::optional<Rows> best;
  std::tuple<i64, i64> least;
  for_each_choice(set, [&](const Rows& rows) {
    for (size_t a = 0; a < rows.size(); ++a) {
      if (!is_allowed(set, set.rows[rows[a]], a)) return false;
    }
    if (budget_bytes_ && operand_bytes(set, rows) > *budget_bytes_) return false;
    const std::tuple cost(price_of(set, rows), first_wins ? 0 : moved_operands(set, rows));
    if (!best || cost < least) {
      best = rows;
      least = cost;
    }
    return false;
  });
  if (!best) fail(set);
  return action_of(set, std::move(*best));
}

/// Gives each axis its cheapest row and the operands' placements after it to the next axis.
Action GreedyReshard::axis_by_axis(const ActionSet& set) const {
  ActionSet now = set;
  Rows rows;
  for (size_t a = 0; a < set.mesh.axes().size(); ++a) {
    std::optional<size_t> best;
    std::tuple<i64, i64> least;
    for (size_t r = 0; r < now.rows.size(); ++r) {
      const OpRow& row = now.rows[r];
      if (!is_allowed(now, row, a)) continue;
      i64 moved = 0;
      for (size_t i = 0; i < row.operands.size(); ++i) {
        moved += static_cast<i64>(now.operands[i].on[a] != row.operands[i]);
      }
      const std::tuple cost(price_along(now, row, a), moved);
      if (best && cost >= least) continue;
      best = r;
      least = cost;
    }
    if (!best) fail(set);
    rows.push_back(*best);
    for (size_t i = 0; i < now.operands.size(); ++i) {
      now.operands[i].on[a] = now.rows[*best].operands[i];
    }
  }
  return action_of(set, std::move(rows));
}

Action GreedyReshard::choose(const ActionSet& set) const {
  const bool by_axis = set.parity == Parity::kC || set.parity == Parity::kD;
  return by_axis ? axis_by_axis(set) : jointly(set);
}

Action NoReshard::choose(const ActionSet& set) const {
  auto rows = first_with(set, AllowedMoves::none());
  if (!rows && set.parity == Parity::kA) rows = first_with(set, AllowedMoves::all());
  if (!rows) throw refusal(set, "no row accepts the operands as they are placed");
  return action_of(set, std::move(*rows));
}

Action PartialsOnly::choose(const ActionSet& set) const {
  auto rows = first_with(set, AllowedMoves::none());
  if (!rows) rows = first_with(set, AllowedMoves::partials_only());
  if (!rows) throw refusal(set, "no row takes the operands when their sums are reduced");
  return action_of(set, std::move(*rows));
}

}  // namespace shardtool::plan
