#pragma once

#include <string>

#include "lib/api/transfer/logical_checkpoint.h"
#include "lib/api/transfer/output_plan.h"
#include "lib/api/transfer/target_layout.h"

namespace shardtool::api {

/// What makes two runs the same: whatever is finished of one is finished of the other. Hashes, 32
/// hexadecimal digits each.
struct RunIdentity {
  /// Every source file's size, times of modification and of change, inode and header, and what the
  /// manifests expect of its data.
  std::string source;
  /// Every output file with its header, and where each element of each tensor goes.
  std::string target;

  /// Of both: names the run's hidden folder.
  std::string id() const;
  /// One word that names both.
  std::string text() const { return source + "-" + target; }

  bool operator==(const RunIdentity&) const = default;
};

/// Two hashes joined as in text(), or two empty ones.
RunIdentity parse_run_identity(const std::string& text);

RunIdentity run_identity(const LogicalCheckpoint& source, const TargetLayout& target,
                         const OutputPlan& plan);

}  // namespace shardtool::api
