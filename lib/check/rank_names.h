#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::check {

/// Rank in a file's name, in the numbering schemes of engines.
struct RankName {
  i64 rank = 0;
  std::optional<i64> part;   ///< part among that rank's files, from 0
  std::optional<i64> ranks;  ///< number of ranks, if the name contains it
};

/// Parses names of files, "model-rank-3-part-0.safetensors" (vLLM, ours), "rank3.safetensors"
/// (TensorRT-LLM), "model3-mp8.safetensors" (DeepSeek), "pytorch_model-TP-003.safetensors",
/// "consolidated.03.safetensors", also .pth (Meta), and of folders, "rank_3", "mp_rank_03",
/// "tp_rank_3". Nullopt for other names, and for numbers of more than nine digits.
std::optional<RankName> parse_rank_name(std::string_view name);

/// Parses the name of a numbered part, "model-00001-of-00003.safetensors", into its stem, "model",
/// and the count, 3. A rank in front of it, as in torch's "shard-00002-model-00001-of-00003", is
/// not part of the stem. Nullopt for other names.
std::optional<std::pair<std::string, i64>> parse_part_name(std::string_view name);

/// Paths of the folders inside a folder whose names have a rank (parse_rank_name), ordered by rank;
/// empty if there are none, or if two have the same rank.
std::vector<std::string> rank_folders(const std::string& folder);

}  // namespace shardtool::check
