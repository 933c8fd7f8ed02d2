#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/api/transform.h"
#include "lib/check/data/subset.h"
#include "lib/check/findings.h"

namespace shardtool::api {

struct CheckOptions {
  std::vector<std::string> sources;  ///< checkpoints; parts of one split are checked together
  /// If set, also checks every checkpoint against this mapping. Shards without a manifest need it
  /// to be checked as parts of a whole. If it names only a config.json, checkpoints are checked
  /// against that, and against no mapping.
  std::optional<MappingChoice> mapping;
  std::string profile;              ///< see check::Profile, or empty
  std::vector<std::string> ignore;  ///< rules, or prefixes of their ids
  std::string baseline;             ///< a file of known findings, or empty
  /// If set, reads the data of these tensors; otherwise headers only.
  std::optional<check::DataSubset> data;
  exec::Resources resources;
};

struct CheckReport {
  std::vector<check::Finding> findings;  ///< the first ones of each rule, sorted
  std::vector<check::RuleCount> rules;   ///< broken rules, with all their findings counted
  std::vector<check::CheckRule> off;     ///< rules that were not asked for
  i64 errors = 0;
  i64 warnings = 0;
  i64 notes = 0;
  i64 known = 0;       ///< findings omitted because the baseline has them
  i64 unreadable = 0;  ///< paths, of several, that cannot be checked at all
  i64 files = 0;
  i64 tensors = 0;
  i64 bytes = 0;       ///< all stored tensors, replicas included
  i64 bytes_read = 0;  ///< tensor data
  double seconds = 0;
};

/// Collects all problems of checkpoints. An unreadable file is a finding. So is a path that cannot
/// be checked at all, if there are several paths; for a single one its error is thrown. Sources
/// with a layout in front (named_layout) are one checkpoint, which is checked as merge would write
/// it. Throws kUsage, and for such sources the errors of open_model_in_layout.
CheckReport check(const CheckOptions& options);

/// Returns the text of a baseline file at `path` with the report's findings. Paths in it are
/// relative to the working directory.
std::string baseline_text(const CheckReport& report, const std::string& path);

}  // namespace shardtool::api
