#include "lib/plan/reshard_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/plan/placement/moves.h"

namespace shardtool::plan {
namespace {

std::string collectives_of(const ActionSet& set, const OpRow& row, size_t axis) {
  std::vector<std::string> moves;
  for (size_t i = 0; i < row.operands.size(); ++i) {
    const Operand& operand = set.operands[i];
    const Move move = move_between(operand.on[axis], row.operands[i]);
    if (move == Move::kNothing) continue;
    moves.push_back(fmt::format("{} {}", to_string(move), operand.name));
  }
  return fmt::format("{}", fmt::join(moves, ", "));
}

/// The transfers of operands along an axis that a row needs, and of these the moves that are not
/// allowed.
void add_transfers(const ActionSet& set, const OpRow& row, size_t axis, const AllowedMoves& allowed,
                   CandidateLine& line) {
  std::vector<std::string> barred;
  for (size_t i = 0; i < row.operands.size(); ++i) {
    const Placement& needed = row.operands[i];
    const Move move = move_between(set.operands[i].on[axis], needed);
    if (move == Move::kNothing) continue;
    if (!allowed.contains(move)) barred.emplace_back(to_string(move));
    std::string text =
        fmt::format("{} {} over {}", to_string(move), set.operands[i].name, line.axis);
    if (needed.is(Placement::Kind::kSharded)) text += fmt::format(" to axis {}", needed.axis);
    line.insert.push_back(std::move(text));
  }
  if (!barred.empty()) line.why = fmt::format("{} is not allowed", fmt::join(barred, " and "));
}

/// The line of row `rows[axis]`.
CandidateLine line_of(const ActionSet& set, const std::vector<size_t>& rows, size_t axis,
                      bool is_chosen, const AllowedMoves& allowed) {
  const OpRow& row = set.rows[rows[axis]];
  CandidateLine line;
  line.axis = set.mesh.axes()[axis].name;
  for (const Placement& operand : row.operands) line.operands.push_back(to_string(operand));
  line.result = to_string(row.result);
  if (const Feasibility found = feasibility(set, row, axis); found != Feasibility::kPossible) {
    line.status = "infeasible";
    line.why = to_string(found);
    return line;
  }
  line.bytes = price_of(set, rows);
  line.collectives = collectives_of(set, row, axis);
  if (is_chosen) line.status = line.collectives.empty() ? "chosen" : "chosen, moves";
  add_transfers(set, row, axis, allowed, line);
  if (!is_chosen && !line.why.empty()) line.status = "not allowed";
  if (is_chosen) line.why.clear();
  return line;
}

/// True if a row along one mesh axis needs possible and allowed moves only.
bool runs(const ActionSet& set, const OpRow& row, size_t axis, const AllowedMoves& allowed) {
  if (!is_feasible(set, row, axis)) return false;
  for (size_t i = 0; i < row.operands.size(); ++i) {
    if (!allowed.contains(move_between(set.operands[i].on[axis], row.operands[i]))) return false;
  }
  return true;
}

/// An action of `set` in another set of the op, with `row` along one axis; empty if that set lacks
/// one of the rows, or the other axes cannot run so from its placements.
std::vector<size_t> rows_in(const ActionSet& other, const ActionSet& set, const Action& action,
                            size_t axis, const OpRow& row, const AllowedMoves& allowed) {
  std::vector<size_t> rows;
  for (size_t a = 0; a < action.rows.size(); ++a) {
    const OpRow& wanted = a == axis ? row : set.rows[action.rows[a]];
    const auto found = std::ranges::find(other.rows, wanted);
    if (found == other.rows.end()) return {};
    if (a != axis && !runs(other, wanted, a, allowed)) return {};
    rows.push_back(static_cast<size_t>(found - other.rows.begin()));
  }
  return rows;
}

/// True if a line says a better way to run the same row: possible, then allowed, then with fewer
/// bytes, then with fewer transfers.
bool is_better(const CandidateLine& one, const CandidateLine& other) {
  const auto key = [](const CandidateLine& line) {
    return std::tuple(line.status == "infeasible", line.status == "not allowed", line.bytes,
                      line.insert.size());
  };
  return key(one) < key(other);
}

/// The lines of all rows along one axis: those of the set first, then those that only other
/// placements of the operands make possible.
void add_lines(const ActionSet& set, const Action& action, size_t axis, const AllowedMoves& allowed,
               std::span<const ActionSet> sources, std::vector<CandidateLine>& lines) {
  std::vector<OpRow> told;
  const auto best_line = [&](const OpRow& row, std::optional<CandidateLine> best) {
    told.push_back(row);
    for (const ActionSet& source : sources) {
      const auto rows = rows_in(source, set, action, axis, row, allowed);
      if (rows.empty()) continue;
      CandidateLine line = line_of(source, rows, axis, false, allowed);
      if (!best || is_better(line, *best)) best = std::move(line);
    }
    if (best) lines.push_back(*std::move(best));
  };
  std::vector<size_t> rows = action.rows;
  for (rows[axis] = 0; rows[axis] < set.rows.size(); ++rows[axis]) {
    const OpRow& row = set.rows[rows[axis]];
    const bool is_chosen = rows[axis] == action.rows[axis];
    CandidateLine own = line_of(set, rows, axis, is_chosen, allowed);
    if (is_chosen) {
      told.push_back(row);
      lines.push_back(std::move(own));
    } else {
      best_line(row, std::move(own));
    }
  }
  for (const ActionSet& source : sources) {
    for (const OpRow& row : source.rows) {
      if (std::ranges::find(told, row) == told.end()) best_line(row, std::nullopt);
    }
  }
}

/// Adds to the refusal of a solver the transfers of the cheapest action, which would make it legal.
Action choose_or_advise(const Solver& solver, const ActionSet& set) {
  try {
    return solver.choose(set);
  } catch (Error& refusal) {
    if (refusal.code() != ErrorCode::kPlacement) throw;
    try {
      const Action free = GreedyReshard(AllowedMoves::all()).choose(set);
      std::vector<std::string> transfers;
      for (const OperandMove& move : moves_of(set, free)) transfers.push_back(to_string(move, set));
      if (!transfers.empty()) {
        refusal.help(fmt::format("insert before it: {}; --solver greedy inserts it",
                                 fmt::join(transfers, ", ")));
      }
    } catch (const Error&) {
      // no moves make it legal: the refusal stands as it is
    }
    throw;
  }
}

}  // namespace

ReshardReport report_of(const ActionSet& set, const Action& action, const AllowedMoves& allowed,
                        std::span<const ActionSet> sources) {
  ReshardReport report;
  for (size_t axis = 0; axis < action.rows.size(); ++axis) {
    add_lines(set, action, axis, allowed, sources, report.lines);
  }
  const i64 moved = moved_operands(set, action.rows);
  report.headline = moved > 0 ? fmt::format("{} moves {}: {} bytes per device", set.op,
                                            plural(moved, "operand"), format_count(action.bytes))
                              : fmt::format("{} uses its operands as they are placed", set.op);
  return report;
}

Action choose(const Solver& solver, const ActionSet& set, OnReshard policy,
              std::vector<std::string>& warnings) {
  Action action = choose_or_advise(solver, set);
  apply(policy, set, action, warnings);
  return action;
}

void apply(OnReshard policy, const ActionSet& set, const Action& action,
           std::vector<std::string>& warnings) {
  if (policy == OnReshard::kSilent || moved_operands(set, action.rows) == 0) return;
  const ReshardReport report = report_of(set, action, AllowedMoves::all());
  if (policy == OnReshard::kWarn) {
    warnings.push_back(report.headline);
    return;
  }
  Error error(ErrorCode::kPlacement, report.headline);
  for (const CandidateLine& line : report.lines) {
    if (!line.status.starts_with("chosen,")) continue;
    error.note(line.axis, fmt::format("{} ({} -> {})", line.collectives,
                                      fmt::join(line.operands, ", "), line.result));
  }
  throw error.help("move the operands beforehand, or let ops move them");
}

}  // namespace shardtool::plan
