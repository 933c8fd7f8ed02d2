#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/plan/placement/program.h"

namespace shardtool::plan {

/// One layer of a chain.
struct Link {
  size_t program = 0;
  size_t variant = 0;  ///< layers with the same program and variant decide alike
};

/// Programs one after another, each entered with what the one before it keeps.
struct Chain {
  std::vector<const Program*> programs;
  std::vector<Link> links;
};

struct ChainPlan {
  std::vector<ProgramPlan> plans;  ///< the distinct ones
  std::vector<size_t> of_link;     ///< plan of every link
  i64 bytes = 0;                   ///< received by one device, all links together
};

/// Chooses the action of one op of a link.
using ChooseAt = std::function<Action(const Link& link, size_t op, const ActionSet& set)>;

/// Chooses op by op (plan_op_by_op).
ChainPlan plan_op_by_op(const Chain& chain, const ChooseAt& choose, Parity parity, Reuse reuse);
/// Finds the cheapest plan of each link, entered as the one before it leaves the values.
ChainPlan plan_by_link(const Chain& chain, const AllowedMoves& allowed);
/// Finds the cheapest plan of all links together. Throws as plan_together does.
ChainPlan plan_together(const Chain& chain, const AllowedMoves& allowed);

}  // namespace shardtool::plan
