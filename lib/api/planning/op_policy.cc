#include "lib/api/planning/op_policy.h"

#include <array>
#include <string_view>

#include "lib/base/error.h"

namespace shardtool::api {

plan::AllowedMoves OpPolicy::allowed() const {
  plan::AllowedMoves moves;
  moves.reduce_scatter = allow_partial_to_sharded;
  return moves;
}

std::unique_ptr<plan::Solver> OpPolicy::make() const {
  switch (solver) {
    case OpSolver::kGreedy:
      return std::make_unique<plan::GreedyReshard>(allowed(), operand_budget);
    case OpSolver::kNone:
      return std::make_unique<plan::NoReshard>();
    case OpSolver::kPartials:
      return std::make_unique<plan::PartialsOnly>();
    case OpSolver::kTogether:
    case OpSolver::kExact:
      break;
  }
  throw Error(ErrorCode::kInternal, "a joint plan has no solver of single ops");
}

std::string to_string(OpSolver solver) {
  constexpr auto kNames =
      std::to_array<std::string_view>({"greedy", "none", "partials", "together", "exact"});
  return std::string(kNames[static_cast<size_t>(solver)]);
}

std::string to_string(plan::Parity generation) {
  constexpr auto kNames = std::to_array<std::string_view>({"exact", "A", "B", "C", "D"});
  return std::string(kNames[static_cast<size_t>(generation)]);
}

}  // namespace shardtool::api
