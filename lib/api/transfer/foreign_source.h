#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/check/foreign_shards.h"
#include "lib/checkpoint/checkpoint.h"

namespace shardtool::api {

/// The locations, with every folder that only holds one folder per rank replaced by these.
std::vector<std::string> with_rank_folders(const std::vector<std::string>& locations);

/// What devices hold, by the names of the files, or of the folders that they are in; nothing when
/// these do not number ranks. Files are numbered over all parts.
std::optional<check::ForeignShards> as_foreign_shards(
    const std::vector<checkpoint::Checkpoint>& parts);

/// The rank that a folder is named after.
std::optional<check::RankName> rank_of_folder(const checkpoint::Checkpoint& part);

}  // namespace shardtool::api
