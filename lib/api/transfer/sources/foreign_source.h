#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/check/foreign_shards.h"
#include "lib/format/checkpoint.h"
#include "lib/mapping/mapping.h"

namespace shardtool::api {

/// Returns the locations, with every folder that only holds one folder per rank replaced by these.
std::vector<std::string> with_rank_folders(const std::vector<std::string>& locations);

/// Returns the devices' contents by the rank numbers in the names of files or folders; nullopt if
/// names do not number ranks. Files are numbered over all parts.
std::optional<check::ForeignShards> as_foreign_shards(const std::vector<format::Checkpoint>& parts);

/// Throws kUnsupported for a tensor that a rule of "read" would take apart: the rule counts the
/// groups of a whole tensor, and nothing says how many of them a rank has.
void refuse_fused(const check::ForeignShards& shards, const mapping::Mapping& mapping);

/// Returns the rank in a folder's name.
std::optional<check::RankName> rank_of_folder(const format::Checkpoint& part);

}  // namespace shardtool::api
