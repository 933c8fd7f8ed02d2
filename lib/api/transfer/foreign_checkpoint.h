#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/api/mapping_choice.h"
#include "lib/api/transfer/foreign_source.h"
#include "lib/check/finding.h"

namespace shardtool::api {

/// Files that names number by ranks, of a tool that leaves no manifest.
struct ForeignFiles {
  std::vector<checkpoint::Checkpoint> parts;
  check::ForeignShards shards;

  /// The model's config.json beside the files, or empty.
  const std::string& config_path() const { return parts.front().config_path; }
};

/// Nothing where the first location has a manifest, or the names do not number ranks. Throws what
/// opening throws.
std::optional<ForeignFiles> find_foreign_files(const std::vector<std::string>& locations);

/// Shards without a manifest, with what a mapping of the whole model says of them.
///
/// F1 shards.tensors and resolution.tensors are the same tensors in the same order, those of the
///    whole model that some rank has
/// F2 without misfits every device has the parts that its layout gives it, and no others
struct ForeignCheckpoint {
  LogicalCheckpoint shards;
  mapping::Resolution resolution;
  std::vector<check::Finding> misfits;
};

/// Places the files' tensors as the mapping cuts the whole model's. Shapes are proved to fit; which
/// rows and columns they are is what the mapping says. Throws what applying the mapping throws.
ForeignCheckpoint place_foreign_files(ForeignFiles files, const MappingChoice& choice,
                                      const LogicalCheckpoint& whole);

}  // namespace shardtool::api
