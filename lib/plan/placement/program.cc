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

/// Shapes of all values, which no choice changes.
class Shapes {
 public:
  explicit Shapes(const Program& program) {
    for (const Operand& operand : program.operands) add(operand.name, operand);
    for (const ProgramOp& op : program.ops) {
      for (const std::string& name : op.in) static_cast<void>(of(name));
      for (size_t i = 0; i < op.out.size(); ++i) {
        add(op.out[i], {op.out[i], op.out_shapes[i], op.element_bytes, {}});
      }
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
  if (op.bounds_result) set.result_shape = op.out_shapes.front();
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
  for (const std::string& name : op.out) values[name] = {action.results};
}

/// The placements of an op's operands.
Values operands_of(const ProgramOp& op, const Values& values) {
  Values operands;
  for (const std::string& name : op.in) operands[name] = values.at(name);
  return operands;
}

Values placed_operands(const Program& program, const Values& entering) {
  Values values;
  for (const Operand& operand : program.operands) {
    const auto found = entering.find(operand.name);
    values[operand.name] = found == entering.end() ? std::set<On>{operand.on} : found->second;
  }
  return values;
}

/// The values that later programs read.
Values left_by(const Program& program, const Values& values) {
  Values left;
  for (const auto& [name, later] : program.kept) left[later] = values.at(name);
  return left;
}

/// True if slices alone lead from one placement to the other.
bool is_slice_of(const On& whole, const On& part) {
  for (size_t a = 0; a < whole.size(); ++a) {
    const bool sliced =
        whole[a].is(Placement::Kind::kReplicated) && part[a].is(Placement::Kind::kSharded);
    if (whole[a] != part[a] && !sliced) return false;
  }
  return true;
}

/// Drops placements that another one gives for free, which therefore save nothing later.
void drop_slices(std::set<On>& placements) {
  for (auto part = placements.begin(); part != placements.end();) {
    const bool is_free = std::ranges::any_of(placements, [&part](const On& whole) {
      return whole != *part && is_slice_of(whole, *part);
    });
    part = is_free ? placements.erase(part) : std::next(part);
  }
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

On needed(const ActionSet& set, const Action& action, size_t operand) {
  On on;
  for (const size_t row : action.rows) on.push_back(set.rows[row].operands[operand]);
  return on;
}

/// True if `one` costs no more than `other` and slices of what it leaves are what `other` leaves.
bool is_as_good(const ActionSet& set, const Action& one, const Action& other) {
  if (one.bytes > other.bytes || !is_slice_of(one.results, other.results)) return false;
  for (size_t i = 0; i < set.operands.size(); ++i) {
    if (!is_slice_of(needed(set, one, i), needed(set, other, i))) return false;
  }
  return true;
}

/// Drops actions that another one makes needless, where slices are free.
void drop_needless(const ActionSet& set, std::vector<Action>& actions) {
  std::vector<Action> kept;
  for (size_t i = 0; i < actions.size(); ++i) {
    bool is_needless = false;
    for (size_t j = 0; j < actions.size() && !is_needless; ++j) {
      if (i == j || !is_as_good(set, actions[j], actions[i])) continue;
      is_needless = j < i || !is_as_good(set, actions[i], actions[j]);
    }
    if (!is_needless) kept.push_back(actions[i]);
  }
  actions = std::move(kept);
}

/// Shortest paths over (op, values that are read later).
class Together {
 public:
  Together(const Program& program, const AllowedMoves& allowed, const Values& entering)
      : program_(program), shapes_(program), allowed_(allowed) {
    Values values = placed_operands(program_, entering);
    forget(0, values);
    reach(0, {0, std::move(values)}, {});
  }

  /// Plans to the next cheapest end; nullopt if there is no other.
  std::optional<ProgramPlan> next() {
    while (!queue_.empty()) {
      const auto [bytes, state] = *queue_.begin();
      queue_.erase(queue_.begin());
      if (is_settled_better(state)) continue;
      if (state.first == program_.ops.size()) return way_to(state, bytes);
      extend(bytes, state);
    }
    return std::nullopt;
  }

 private:
  using State = std::pair<size_t, Values>;
  struct Arrival {
    i64 bytes = 0;
    State from;
    const ActionSet* set = nullptr;
    Action action;
  };
  /// The actions of an op with operands from given placements.
  struct Choices {
    ActionSet set;
    std::vector<Action> actions;
  };

  /// True if a state that was reached for no more bytes has every value of this one, or the whole
  /// of which it is a slice. Otherwise records the state.
  bool is_settled_better(const State& state) {
    std::vector<const Values*>& settled = settled_[state.first];
    const bool found = std::ranges::any_of(
        settled, [&](const Values* other) { return has_all(*other, state.second); });
    if (!found) settled.push_back(&reached_.find(state)->first.second);
    return found;
  }

  bool has_all(const Values& values, const Values& wanted) const {
    return std::ranges::equal(values, wanted, [this](const auto& one, const auto& other) {
      return std::ranges::all_of(other.second, [&](const On& on) {
        if (one.second.contains(on)) return true;
        return allowed_.slice && std::ranges::any_of(one.second, [&on](const On& whole) {
                 return is_slice_of(whole, on);
               });
      });
    });
  }

  void extend(i64 bytes, const State& state) {
    const ProgramOp& op = program_.ops[state.first];
    for (const std::vector<On>& on : sources_of(op, state.second)) {
      const Choices& choices = choices_of(state.first, on);
      for (const Action& action : choices.actions) {
        Values after = state.second;
        record(op, choices.set, action, Reuse::kYes, after);
        forget(state.first + 1, after);
        const i64 there = bytes + action.bytes;
        reach(there, {state.first + 1, std::move(after)}, {there, state, &choices.set, action});
      }
    }
  }

  const Choices& choices_of(size_t op, const std::vector<On>& on) {
    const auto key = std::pair(op, on);
    const auto known = choices_.find(key);
    if (known != choices_.end()) return known->second;
    Choices choices{actions_of(program_, program_.ops[op], shapes_, on, Parity::kExact), {}};
    choices.actions = allowed_actions(choices.set, allowed_);
    if (allowed_.slice) drop_needless(choices.set, choices.actions);
    return choices_.emplace(key, std::move(choices)).first->second;
  }

  /// Drops values that neither an op from `next` on nor a later program reads, and slices where
  /// slices are free.
  void forget(size_t next, Values& values) const {
    if (allowed_.slice) {
      for (auto& [name, placements] : values) drop_slices(placements);
    }
    std::erase_if(values, [&](const auto& value) {
      for (const auto& [name, later] : program_.kept) {
        if (name == value.first) return false;
      }
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
    if (reached_.size() > kMostStates) {
      throw Error(ErrorCode::kLimit, fmt::format("a joint plan of {} ops needs more than {} states",
                                                 program_.ops.size(), kMostStates))
          .help("decide op by op (--solver greedy), or on a mesh of fewer axes");
    }
    arrival.bytes = bytes;
    queue_.emplace(bytes, state);
    reached_.insert_or_assign(std::move(state), std::move(arrival));
  }

  ProgramPlan way_to(const State& last, i64 bytes) const {
    ProgramPlan plan{{}, {}, {}, bytes, left_by(program_, last.second)};
    for (State at = last; at.first > 0;) {
      const Arrival& arrival = reached_.at(at);
      plan.actions.push_back(arrival.action);
      plan.sets.push_back(*arrival.set);
      at = arrival.from;
      plan.available.push_back(operands_of(program_.ops[at.first], at.second));
    }
    std::reverse(plan.actions.begin(), plan.actions.end());
    std::reverse(plan.sets.begin(), plan.sets.end());
    std::reverse(plan.available.begin(), plan.available.end());
    return plan;
  }

  const Program& program_;
  const Shapes shapes_;
  const AllowedMoves& allowed_;
  std::map<std::pair<size_t, std::vector<On>>, Choices> choices_;
  std::map<size_t, std::vector<const Values*>> settled_;
  std::map<State, Arrival> reached_;
  std::set<std::pair<i64, State>> queue_;
};

}  // namespace

std::vector<ActionSet> action_sets(const Program& program, size_t op, const Values& available,
                                   Parity parity) {
  const Shapes shapes(program);
  std::vector<ActionSet> sets;
  for (const std::vector<On>& on : sources_of(program.ops[op], available)) {
    sets.push_back(actions_of(program, program.ops[op], shapes, on, parity));
  }
  return sets;
}

ProgramPlan plan_op_by_op(const Program& program, const Choose& choose, Parity parity, Reuse reuse,
                          const Values& entering) {
  const Shapes shapes(program);
  Values values = placed_operands(program, entering);
  ProgramPlan plan;
  for (size_t number = 0; number < program.ops.size(); ++number) {
    const ProgramOp& op = program.ops[number];
    std::optional<std::pair<ActionSet, Action>> best;
    std::optional<Error> refusal;
    for (const std::vector<On>& on : sources_of(op, values)) {
      ActionSet set = actions_of(program, op, shapes, on, parity);
      Action action;
      try {
        action = choose(number, set);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kPlacement) throw;
        if (!refusal) refusal = error;
        continue;
      }
      if (best && best->second.bytes <= action.bytes) continue;
      best.emplace(std::move(set), std::move(action));
    }
    if (!best) throw std::move(*refusal);
    plan.available.push_back(operands_of(op, values));
    record(op, best->first, best->second, reuse, values);
    plan.bytes += best->second.bytes;
    plan.sets.push_back(std::move(best->first));
    plan.actions.push_back(std::move(best->second));
  }
  plan.left = left_by(program, values);
  return plan;
}

ProgramPlan plan_op_by_op(const Program& program, const Solver& solver, Parity parity,
                          Reuse reuse) {
  return plan_op_by_op(
      program, [&solver](size_t, const ActionSet& set) { return solver.choose(set); }, parity,
      reuse);
}

ProgramPlan plan_together(const Program& program, const AllowedMoves& allowed,
                          const Values& entering) {
  auto plan = Together(program, allowed, entering).next();
  if (!plan) throw Error(ErrorCode::kPlacement, "no allowed moves run all ops");
  return std::move(*plan);
}

std::vector<ProgramPlan> plan_exits(const Program& program, const AllowedMoves& allowed,
                                    const Values& entering) {
  Together together(program, allowed, entering);
  std::vector<ProgramPlan> plans;
  while (auto plan = together.next()) plans.push_back(std::move(*plan));
  return plans;
}

}  // namespace shardtool::plan
