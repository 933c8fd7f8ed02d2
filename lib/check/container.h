#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/check/findings.h"
#include "lib/checkpoint/checkpoint.h"

namespace shardtool::check {

/// Turns what reading a checkpoint reports into findings about files of `folder`, as they come. The
/// folder and the findings must outlive it.
class ContainerProblems {
 public:
  ContainerProblems(const std::string& folder, Findings& findings)
      : folder_(folder), findings_(findings) {}

  void note(const checkpoint::Problem& problem);
  /// Adds what is only understood at the end: a missing file is a rank's where a manifest names it.
  void finish(const checkpoint::Checkpoint& opened);
  /// Whether it is unclear how the files belong together; no finding yet, since a mapping may say
  /// it.
  const std::optional<Finding>& unclear() const { return unclear_; }

 private:
  const std::string& folder_;
  Findings& findings_;
  std::vector<Finding> missing_;
  std::optional<Finding> unclear_;
};

/// ST01: what opened headers tell: odd addresses, missing "format", unlisted files, total_size.
void check_container(const checkpoint::Checkpoint& checkpoint, Findings& findings);

/// "folder/name", and the folder alone without a name.
std::string path_in(const std::string& folder, const std::string& name);

}  // namespace shardtool::check
