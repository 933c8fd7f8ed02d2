#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/plan/placement/action_set.h"

namespace shardtool::plan {

/// The chosen way to run an op.
struct Action {
  std::vector<size_t> rows;        ///< per mesh axis, an index into the set's rows
  i64 bytes = 0;                   ///< price_of
  std::vector<Placement> results;  ///< of the result, per mesh axis
};

/// Chooses how an op runs. Users of the library may implement their own.
class Solver {
 public:
  Solver() = default;
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;
  virtual ~Solver() = default;
  /// One row per mesh axis. Throws kPlacement where none is allowed.
  virtual Action choose(const ActionSet& set) const = 0;
};

/// Which moves of operands a solver may make by itself.
struct AllowedMoves {
  bool slice = true;
  bool all_gather = true;
  bool all_to_all = true;
  bool all_reduce = true;
  bool reduce_scatter = false;  ///< allow_partial_to_sharded: keeps tensor parallelism's sums whole
  bool keep_one = true;         ///< R -> P, which only kD's rows reach

  static AllowedMoves all() { return {.reduce_scatter = true}; }
  /// Sums only: {(Partial, Replicated)}.
  static AllowedMoves partials_only();
  static AllowedMoves none();
  bool contains(Move move) const;
};

/// The cheapest feasible and allowed action, where no operands' bytes on a device exceed the
/// budget. Decides all mesh axes together, kC and kD axis by axis, each with the ones before it
/// decided. Ties go to the fewest moved operands, then to the rows' order; kA and kB to the first
/// found in product order, the last mesh axis fastest.
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

/// The first action that moves nothing; kA the first feasible one where there is none.
class NoReshard : public Solver {
 public:
  Action choose(const ActionSet& set) const override;
};

/// The first action that moves nothing, else the first that only reduces Partial operands.
class PartialsOnly : public Solver {
 public:
  Action choose(const ActionSet& set) const override;
};

}  // namespace shardtool::plan
