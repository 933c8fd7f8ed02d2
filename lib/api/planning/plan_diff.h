#pragma once

#include <string>
#include <vector>

namespace shardtool::api {

/// A value that two plans do not share.
struct PlanChange {
  std::string field;  ///< "devices/3/total_bytes", "reshard/tensors/lm_head.weight/bytes_moved"
  std::string a;      ///< as JSON; empty: absent
  std::string b;
};

struct PlanDiff {
  std::vector<PlanChange> changes;  ///< in the order of the fields' names
  bool equal() const { return changes.empty(); }
};

/// Compares what two plans say, saved or printed by --json: every value but warnings, the source's
/// path and what applying needs. Elements of lists are matched by their name or rank. Throws
/// kPlanInvalid for a file that is no document of `plan`, and what io::read_text throws.
PlanDiff diff_plans(const std::string& path_a, const std::string& path_b);

}  // namespace shardtool::api
