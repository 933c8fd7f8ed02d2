#include "lib/plan/placement/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lib/base/error.h"
#include "lib/plan/placement/program_values.h"

namespace shardtool::plan {
namespace {

using On = std::vector<Placement>;

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

}  // namespace

ValueShapes::ValueShapes(const Program& program) {
  for (const Operand& operand : program.operands) add(operand.name, operand);
  for (const ProgramOp& op : program.ops) {
    for (const std::string& name : op.in) static_cast<void>(of(name));
    for (size_t i = 0; i < op.out.size(); ++i)
      add(op.out[i], {op.out[i], op.out_shapes[i], op.element_bytes, {}});
  }
}

const Operand& ValueShapes::of(const std::string& name) const {
  const auto found = operands_.find(name);
  if (found != operands_.end()) return found->second;
  throw Error(ErrorCode::kInternal, fmt::format("no op makes the value '{}'", name));
}

void ValueShapes::add(const std::string& name, Operand operand) {
  if (!operands_.emplace(name, std::move(operand)).second)
    throw Error(ErrorCode::kInternal, fmt::format("the value '{}' is made twice", name));
}

ActionSet actions_of(const Program& program, const ProgramOp& op, const ValueShapes& shapes,
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

std::vector<ActionSet> action_sets(const Program& program, size_t op, const Values& available,
                                   Parity parity) {
  const ValueShapes shapes(program);
  std::vector<ActionSet> sets;
  for (const std::vector<On>& on : sources_of(program.ops[op], available)) {
    sets.push_back(actions_of(program, program.ops[op], shapes, on, parity));
  }
  return sets;
}

ProgramPlan plan_op_by_op(const Program& program, const Choose& choose, Parity parity, Reuse reuse,
                          const Values& entering) {
  const ValueShapes shapes(program);
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

}  // namespace shardtool::plan
