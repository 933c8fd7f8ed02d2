#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/api/transform.h"
#include "lib/check/findings.h"
#include "lib/check/subset.h"

namespace shardtool::api {

struct CheckOptions {
  std::vector<std::string> sources;  ///< checkpoints; parts of one split are checked together
  /// Also hold every checkpoint against a mapping. For shards without a manifest it says what they
  /// are parts of.
  std::optional<MappingChoice> mapping;
  std::string profile;              ///< see check::Profile, or empty
  std::vector<std::string> ignore;  ///< rules, or begins of their ids
  std::string baseline;             ///< a file of known findings, or empty
  /// Read data, of these tensors; without it headers only.
  std::optional<check::DataSubset> data;
  exec::Resources resources;
};

struct CheckReport {
  std::vector<check::Finding> findings;  ///< of each rule the first ones, sorted
  std::vector<check::RuleCount> rules;   ///< that were broken, with all their findings counted
  i64 errors = 0;
  i64 warnings = 0;
  i64 notes = 0;
  i64 known = 0;  ///< findings left out because the baseline has them
  i64 files = 0;
  i64 tensors = 0;
  i64 bytes = 0;       ///< of all stored tensors, replicas included
  i64 bytes_read = 0;  ///< of data
  double seconds = 0;
};

/// Looks for everything that is wrong with checkpoints and collects it; a file that cannot be read
/// is a finding. Throws kUsage, and the input errors where a path gives nothing to check at all.
CheckReport check(const CheckOptions& options);

/// The text of a baseline file at `path` that knows these findings. Paths in it count from the
/// working directory.
std::string baseline_text(const CheckReport& report, const std::string& path);

}  // namespace shardtool::api
