#pragma once

#include <string>
#include <vector>

namespace shardtool::api {

/// A value that differs between two plans.
struct PlanChange {
  std::string field;  ///< "devices/3/total_bytes", "reshard/tensors/lm_head.weight/bytes_moved"
  std::string a;      ///< as JSON; empty: absent
  std::string b;
};

struct PlanDiff {
  std::vector<PlanChange> changes;  ///< sorted by field
  bool equal() const { return changes.empty(); }
};

/// Compares two plans, saved or printed by --json: all values except warnings, the source's path,
/// and what only applying needs. Elements of lists are matched by name or rank. Throws kPlanInvalid
/// for a file that is not a document of `plan`, and what store::read_text throws.
PlanDiff diff_plans(const std::string& path_a, const std::string& path_b);

}  // namespace shardtool::api
