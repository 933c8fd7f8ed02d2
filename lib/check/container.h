#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/check/findings.h"
#include "lib/format/checkpoint.h"

namespace shardtool::check {

/// Converts the problems of reading a checkpoint into findings about files of `folder`, as they
/// arrive. The folder and the findings must outlive it.
class ContainerProblems {
 public:
  ContainerProblems(const std::string& folder, Findings& findings)
      : folder_(folder), findings_(findings) {}

  void note(const format::Problem& problem);
  /// Adds the findings that depend on all problems: a missing file belongs to a rank if a manifest
  /// names it, and a wrong size is reported unless the file is already reported as truncated.
  void finish(const format::Checkpoint& opened);
  /// Finding for files with an unclear grouping; not yet added, because a mapping may resolve it.
  const std::optional<Finding>& unclear() const { return unclear_; }

 private:
  const std::string& folder_;
  Findings& findings_;
  std::vector<Finding> missing_;
  std::vector<Finding> sizes_;
  std::set<std::string> short_;  ///< truncated files
  std::optional<Finding> unclear_;
};

/// ST01: findings from opened headers: misaligned tensors, missing "format", unlisted files,
/// total_size.
void check_container(const format::Checkpoint& checkpoint, Findings& findings);

/// Joins "folder/name"; without a name, the folder alone.
std::string path_in(const std::string& folder, const std::string& name);

}  // namespace shardtool::check
