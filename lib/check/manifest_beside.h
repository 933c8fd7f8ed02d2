#pragma once

#include <memory>
#include <string>

#include "lib/check/container.h"
#include "lib/format/checkpoint.h"

namespace shardtool::check {

/// Manifests in the folders of single files, each read once for consecutive files of one folder.
class ManifestsBeside {
 public:
  /// Adds the output manifest's records to a single file of an output: those of this file, its rank
  /// and its shards. Reports differences from the header, and ST0305 for a file that the manifest
  /// does not name. Leaves folders, and files without one of our manifests, unchanged.
  void add_to(format::Checkpoint& opened, ContainerProblems& problems, Findings& findings);

 private:
  void read(const std::string& folder, ContainerProblems& problems);

  std::string folder_;
  std::shared_ptr<const format::Manifest> manifest_;  ///< of folder_; null: no manifest of ours
};

}  // namespace shardtool::check
