#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transform.h"
#include "lib/mapping/mapping.h"

namespace shardtool::model {
struct Graph;
}

namespace shardtool::api {

struct Opening {
  /// Takes files of single ranks that are opened without their manifest (format::kFilesOfRanks).
  /// Their tensors are parts, and nothing says of what.
  bool takes_files_of_ranks = false;
  /// Names the model's config.json for files of another tool, and a mapping file whose rules of
  /// "read" show the tensors of a checkpoint.
  MappingChoice mapping = {};
  /// Takes config.json without weights: the tensors are then those that the model's graph requires
  /// (open_config_alone).
  bool takes_config_alone = false;
  std::shared_ptr<const model::Graph> graph = {};  ///< for config.json; null: the family's
};

/// Opens every location, [FORM:]PLACE[#PREFIX]. FORM is a format, or a layout in which another tool
/// wrote the files of one model, such as "megatron": the tensors are then those of the model, which
/// must be whole. Other locations, if several, are outputs of one split. Throws the errors of
/// open_stored, open_config_alone, open_model_in_layout, refuse_files_of_ranks and read_as_chosen.
LogicalCheckpoint open_logical(const std::vector<std::string>& locations,
                               const Opening& opening = {});

/// True for one location where config.json stands alone, which only a plan takes. Throws the errors
/// of format::config_without_weights.
bool is_config_alone(const std::vector<std::string>& locations);

/// Shows the tensors that a checkpoint without a manifest has by a mapping's rules of "read"; the
/// choice names its config.json. Throws the errors of unfused.
LogicalCheckpoint read_by(const mapping::Mapping& mapping, const MappingChoice& choice,
                          LogicalCheckpoint opened);

/// True if the chosen mapping file has rules of "read". Throws the errors of load_mapping.
bool takes_apart(const MappingChoice& choice);

/// Shows the tensors that a checkpoint has by the rules of "read" of the chosen mapping file, if
/// any. One with a manifest has its tensors already: throws kUnsupported if a rule would take one
/// apart, and the errors of load_mapping and read_by.
LogicalCheckpoint read_as_chosen(LogicalCheckpoint opened, const MappingChoice& choice);

/// The same with the mapping that the manifest of another checkpoint records, if it has one; the
/// choice names the config.json.
LogicalCheckpoint read_as_recorded(LogicalCheckpoint opened, const LogicalCheckpoint& other,
                                   const MappingChoice& choice);

/// Opens inputs of a run that writes their data. Also throws kManifestInvalid for a manifest with a
/// tensor that lacks its digest (format::without_digest).
LogicalCheckpoint open_finished(const std::vector<std::string>& locations,
                                const Opening& opening = {});

}  // namespace shardtool::api
