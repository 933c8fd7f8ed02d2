#pragma once

#include <string>
#include <vector>

#include "lib/api/transfer/sources/logical_checkpoint.h"

namespace shardtool::api {

struct Opening {
  /// Takes files of single ranks that are opened without their manifest (format::kFilesOfRanks).
  /// Their tensors are parts, and nothing says of what.
  bool takes_files_of_ranks = false;
  /// Path of the model's config.json for files of another tool; empty: the one beside them.
  std::string config = {};
};

/// Opens every location, [FORM:]PLACE[#PREFIX]. FORM is a format, or a layout in which another tool
/// wrote the files of one model, such as "megatron": the tensors are then those of the model, which
/// must be whole. Other locations, if several, are outputs of one split. Throws the errors of
/// open_stored, open_model_in_layout and refuse_files_of_ranks.
LogicalCheckpoint open_logical(const std::vector<std::string>& locations,
                               const Opening& opening = {});

/// Opens inputs of a run that writes their data. Also throws kManifestInvalid for a manifest with a
/// tensor that lacks its digest (format::without_digest).
LogicalCheckpoint open_finished(const std::vector<std::string>& locations,
                                const Opening& opening = {});

}  // namespace shardtool::api
