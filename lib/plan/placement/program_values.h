#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/plan/placement/program.h"

namespace shardtool::plan {

/// Shapes of all values of a program, which no choice changes.
class ValueShapes {
 public:
  /// Throws kInternal for violations of P1.
  explicit ValueShapes(const Program& program);
  /// Returns the value as an operand. Throws kInternal for an unknown name.
  const Operand& of(const std::string& name) const;

 private:
  void add(const std::string& name, Operand operand);
  std::map<std::string, Operand> operands_;
};

/// Returns the actions of an op with operands in the placements `on`.
ActionSet actions_of(const Program& program, const ProgramOp& op, const ValueShapes& shapes,
                     const std::vector<std::vector<Placement>>& on, Parity parity);

}  // namespace shardtool::plan
