#include "lib/plan/placement/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lib/base/error.h"

namespace shardtool::plan {
namespace {

using On = std::vector<Placement>;

/// Placements in which every value is available.
using Values = std::map<std::string, std::set<On>>;

/// Shapes of all values, which no choice changes.
class Shapes {
 public:
  explicit Shapes(const Program& program) {
    for (const Operand& operand : program.operands) add(operand.name, operand);
    for (const ProgramOp& op : program.ops) {
      for (const std::string& name : op.in) static_cast<void>(of(name));
      add(op.out, {op.out, op.out_shape, of(op.in.front()).element_bytes, {}});
    }
  }
  const Operand& of(const std::string& name) const {
    const auto found = operands_.find(name);
    if (found != operands_.end()) return found->second;
    throw Error(ErrorCode::kInternal, fmt::format("no op makes the value '{}'", name));
  }

 private:
  void add(const std::string& name, Operand operand) {
    if (!operands_.emplace(name, std::move(operand)).second) {
      throw Error(ErrorCode::kInternal, fmt::format("the value '{}' is made twice", name));
    }
  }
  std::map<std::string, Operand> operands_;
};

/// Set of actions of an op with operands in the placements `on`.
ActionSet actions_of(const Program& program, const ProgramOp& op, const Shapes& shapes,
                     const std::vector<On>& on, Parity parity) {
  ActionSet set{op.op, program.mesh, {}, op.rows, {}, parity};
  if (op.bounds_result) set.result_shape = op.out_shape;
  for (size_t i = 0; i < op.in.size(); ++i) {
    Operand operand = shapes.of(op.in[i]);
    operand.on = on[i];
    set.operands.push_back(std::move(operand));
  }
  return build_action_set(std::move(set));
}

/// Every combination of one available placement per operand.
std::vector<std::vector<On>> sources_of(const ProgramOp& op, const Values& values) {
  std::vector<std::vector<On>> combinations{{}};
  for (const std::string& name : op.in) {
    std::vector<std::vector<On>> longer;
    for (const std::vector<On>& combination : combinations) {
      for (const On& on : values.at(name)) {
        longer.push_back(combination);
        longer.back().push_back(on);
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

/// Records the values after an action: the operands in their new placements, too, and the result.
void record(const ProgramOp& op, const ActionSet& set, const Action& action, Reuse reuse,
            Values& values) {
  for (size_t i = 0; i < op.in.size() && reuse == Reuse::kYes; ++i) {
    On taken;
    for (const size_t row : action.rows) taken.push_back(set.rows[row].operands[i]);
    values.at(op.in[i]).insert(std::move(taken));
  }
  values[op.out] = {action.results};
}

Values placed_operands(const Program& program) {
  Values values;
  for (const Operand& operand : program.operands) values[operand.name] = {operand.on};
  return values;
}

/// Every feasible action with allowed moves only.
std::vector<Action> allowed_actions(const ActionSet& set, const AllowedMoves& allowed) {
  std::vector<Action> actions;
  const size_t axes = set.mesh.axes().size();
  std::vector<size_t> rows(axes, 0);
  const auto is_allowed = [&] {
    for (size_t a = 0; a < axes; ++a) {
      const OpRow& row = set.rows[rows[a]];
      if (!is_feasible(set, row, a)) return false;
      for (size_t i = 0; i < set.operands.size(); ++i) {
        if (!allowed.contains(move_between(set.operands[i].on[a], row.operands[i]))) return false;
      }
    }
    return true;
  };
  for (;;) {
    if (is_allowed()) {
      Action action{rows, price_of(set, rows), {}};
      for (const size_t row : rows) action.results.push_back(set.rows[row].result);
      actions.push_back(std::move(action));
    }
    size_t a = axes;
    while (a > 0 && ++rows[a - 1] == set.rows.size()) rows[--a] = 0;
    if (a == 0) return actions;
  }
}

/// Shortest paths over (op, values that are read later).
class Together {
 public:
  Together(const Program& program, const AllowedMoves& allowed)
      : program_(program), shapes_(program), allowed_(allowed) {}

  ProgramPlan cheapest() {
    reach(0, {0, placed_operands(program_)}, {});
    while (!queue_.empty()) {
      const auto [bytes, state] = *queue_.begin();
      queue_.erase(queue_.begin());
      if (state.first == program_.ops.size()) return way_to(state, bytes);
      extend(bytes, state);
    }
    throw Error(ErrorCode::kPlacement, "no allowed moves run all ops");
  }

 private:
  using State = std::pair<size_t, Values>;
  struct Arrival {
    i64 bytes = 0;
    State from;
    Action action;
  };

  void extend(i64 bytes, const State& state) {
    const ProgramOp& op = program_.ops[state.first];
    for (const std::vector<On>& on : sources_of(op, state.second)) {
      const ActionSet set = actions_of(program_, op, shapes_, on, Parity::kExact);
      for (Action& action : allowed_actions(set, allowed_)) {
        Values after = state.second;
        record(op, set, action, Reuse::kYes, after);
        forget(state.first + 1, after);
        const i64 there = bytes + action.bytes;
        reach(there, {state.first + 1, std::move(after)}, {there, state, std::move(action)});
      }
    }
  }

  /// Drops values that no op from `next` on reads.
  void forget(size_t next, Values& values) const {
    std::erase_if(values, [&](const auto& value) {
      for (size_t i = next; i < program_.ops.size(); ++i) {
        const auto& in = program_.ops[i].in;
        if (std::find(in.begin(), in.end(), value.first) != in.end()) return false;
      }
      return true;
    });
  }

  void reach(i64 bytes, State state, Arrival arrival) {
    const auto known = reached_.find(state);
    if (known != reached_.end()) {
      if (known->second.bytes <= bytes) return;
      queue_.erase({known->second.bytes, state});
    }
    arrival.bytes = bytes;
    queue_.emplace(bytes, state);
    reached_.insert_or_assign(std::move(state), std::move(arrival));
  }

  ProgramPlan way_to(const State& last, i64 bytes) const {
    ProgramPlan plan{{}, bytes};
    for (State at = last; at.first > 0;) {
      const Arrival& arrival = reached_.at(at);
      plan.actions.push_back(arrival.action);
      at = arrival.from;
    }
    std::reverse(plan.actions.begin(), plan.actions.end());
    return plan;
  }

  const Program& program_;
  const Shapes shapes_;
  const AllowedMoves& allowed_;
  std::map<State, Arrival> reached_;
  std::set<std::pair<i64, State>> queue_;
};

}  // namespace

ProgramPlan plan_op_by_op(const Program& program, const Solver& solver, Parity parity,
                          Reuse reuse) {
  const Shapes shapes(program);
  Values values = placed_operands(program);
  ProgramPlan plan;
  for (const ProgramOp& op : program.ops) {
    std::optional<std::pair<ActionSet, Action>> best;
    for (const std::vector<On>& on : sources_of(op, values)) {
      ActionSet set = actions_of(program, op, shapes, on, parity);
      Action action = solver.choose(set);
      if (best && best->second.bytes <= action.bytes) continue;
      best.emplace(std::move(set), std::move(action));
    }
    record(op, best->first, best->second, reuse, values);
    plan.bytes += best->second.bytes;
    plan.actions.push_back(std::move(best->second));
  }
  return plan;
}

ProgramPlan plan_together(const Program& program, const AllowedMoves& allowed) {
  return Together(program, allowed).cheapest();
}

}  // namespace shardtool::plan
