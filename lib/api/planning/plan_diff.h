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

/// The two documents of a comparison as JSON, without what no picture of a difference shows: the
/// recipe, single tensors, pairs of devices, and weights by layer.
struct ComparedPlans {
  std::string a;
  std::string b;
};

struct PlanDiff {
  std::vector<PlanChange> changes;  ///< sorted by field
  ComparedPlans plans;              ///< empty texts unless asked for
  bool equal() const { return changes.empty(); }
};

/// Compares two plans: files of `plan -o`, documents of `plan --json`, or pages of `plan --html`.
/// All values count except warnings, the source's path, and what only applying or pictures need; of
/// layouts, if both have them, the expressions of each rule. Elements of lists are matched by name,
/// rank or rule. `draws` asks for `plans`. Throws kPlanInvalid for a file that is no plan, and what
/// store::read_text throws.
PlanDiff diff_plans(const std::string& path_a, const std::string& path_b, bool draws = false);

}  // namespace shardtool::api
