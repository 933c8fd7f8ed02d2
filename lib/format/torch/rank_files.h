#pragma once

#include <optional>
#include <string_view>

#include "lib/format/reader.h"

namespace shardtool::format::torch {

/// Number of a rank file and of all of them.
struct RankFile {
  int world_size = 0;
  int rank = 0;
};

/// Parses model_world_size_N_rank_R.pt, the name that the trainers verl and SkyRL give the state
/// dict of an FSDP rank; nullopt for other names, and for more than 99,999 ranks.
std::optional<RankFile> rank_file(std::string_view name);

/// A folder with the files of all ranks. A DTensor or ShardedTensor is stored in parts; a plain
/// tensor in as many replicas as ranks have it.
extern const Reader kRankFilesReader;

}  // namespace shardtool::format::torch
