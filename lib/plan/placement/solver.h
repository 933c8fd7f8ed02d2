#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/plan/placement/action_set.h"

namespace shardtool::plan {

/// Chosen way to run an op.
struct Action {
  std::vector<size_t> rows;        ///< per mesh axis, an index into the set's rows
  i64 bytes = 0;                   ///< price_of
  std::vector<Placement> results;  ///< of the result, per mesh axis
};

/// Chooses the way to run an op. Users of the library may implement their own.
class Solver {
 public:
  Solver() = default;
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;
  virtual ~Solver() = default;
  /// Chooses one row per mesh axis. Throws kPlacement if no choice is allowed.
  virtual Action choose(const ActionSet& set) const = 0;
};

/// Moves of operands that a solver may make by itself.
struct AllowedMoves {
  bool slice = true;
  bool all_gather = true;
  bool all_to_all = true;
  bool all_reduce = true;
  bool reduce_scatter = false;  ///< allow_partial_to_sharded: keeps tensor parallelism's sums whole
  bool keep_one = true;         ///< R -> P, which only kD's rows reach

  static AllowedMoves all() { return {.reduce_scatter = true}; }
  /// Allows all-reduce only: {(Partial, Replicated)}.
  static AllowedMoves partials_only();
  static AllowedMoves none();
  bool contains(Move move) const;
};

/// Chooses the cheapest feasible and allowed action whose operands' bytes on a device fit the
/// budget. Decides all mesh axes together, kC and kD axis by axis, each after the previous ones.
/// Breaks ties by the fewest moved operands, then by the rows' order; kA and kB by the first found
/// in product order, the last mesh axis fastest.
class GreedyReshard : public Solver {
 public:
  explicit GreedyReshard(AllowedMoves allowed = {}, std::optional<i64> budget_bytes = std::nullopt)
      : allowed_(allowed), budget_bytes_(budget_bytes) {}
  Action choose(const ActionSet& set) const override;

 private:
  Action jointly(const ActionSet& set) const;
  Action axis_by_axis(const ActionSet& set) const;
  bool is_allowed(const ActionSet& set, const OpRow& row, size_t mesh_axis) const;
  [[noreturn]] void fail(const ActionSet& set) const;

  AllowedMoves allowed_;
  std::optional<i64> budget_bytes_;
};

/// Chooses the first action without moves; otherwise kA takes the first feasible one.
class NoReshard : public Solver {
 public:
  Action choose(const ActionSet& set) const override;
};

/// Chooses the first action without moves, else the first that only reduces Partial operands.
class PartialsOnly : public Solver {
 public:
  Action choose(const ActionSet& set) const override;
};

}  // namespace shardtool::plan
