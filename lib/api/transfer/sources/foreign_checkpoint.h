#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/api/transfer/sources/foreign_source.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transform.h"
#include "lib/check/finding.h"

namespace shardtool::api {

/// Files numbered by rank in their names, from a tool that writes no manifest.
struct ForeignFiles {
  std::vector<format::Checkpoint> parts;
  check::ForeignShards shards;

  /// The model's config.json in the first of the folders that has one, or empty.
  std::string config_path() const;
};

/// Opens locations, or the folders of ranks in them, whose files have a tensor's name on every
/// rank. Throws the errors of opening.
std::vector<format::Checkpoint> survey_files_of_ranks(const std::vector<std::string>& locations);

/// Returns nullopt if the first location has a manifest or the names do not number ranks. Throws
/// the errors of opening.
std::optional<ForeignFiles> find_foreign_files(const std::vector<std::string>& locations);

/// Shards without a manifest, resolved with a mapping of the whole model.
///
/// F1 shards.tensors and resolution.tensors are the same tensors in the same order: those of the
///    whole model that some rank has
/// F2 without misfits every device has exactly the parts of its layout
struct ForeignCheckpoint {
  LogicalCheckpoint shards;
  mapping::Resolution resolution;
  std::vector<check::Finding> misfits;
};

/// Places the files' tensors as the mapping cuts the whole model. Shapes are verified; which rows
/// and columns a part has is taken from the mapping. Group numbers and recorded shapes, of which a
/// rank may have its own, are compared with those of the whole model. Throws what apply_mapping,
/// refuse_fused and exec::load_shifted do.
ForeignCheckpoint place_foreign_files(ForeignFiles files, const MappingChoice& choice,
                                      const LogicalCheckpoint& whole);

}  // namespace shardtool::api
