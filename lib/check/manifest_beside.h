#pragma once

#include <memory>
#include <string>

#include "lib/check/container.h"
#include "lib/checkpoint/checkpoint.h"

namespace shardtool::check {

/// The manifests beside single files, each read once for files of one folder that follow each
/// other.
class ManifestsBeside {
 public:
  /// Gives a single file that lies in an output what the output's manifest says about it: the
  /// records of this file, its rank and its shards. Reports what differs from the header, and
  /// ST0305 for a file that the manifest does not name. A folder, and a file without a manifest of
  /// ours beside it, stay as they are.
  void add_to(checkpoint::Checkpoint& opened, ContainerProblems& problems, Findings& findings);

 private:
  void read(const std::string& folder, ContainerProblems& problems);

  std::string folder_;
  std::shared_ptr<const checkpoint::Manifest> manifest_;  ///< of folder_; null: none of ours
};

}  // namespace shardtool::check
