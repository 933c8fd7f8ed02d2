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

/// Parses "model-rank-3-part-0.safetensors" (vLLM, ours), "rank3.safetensors" (TensorRT-LLM),
/// "model3-mp8.safetensors" (DeepSeek), "pytorch_model-TP-003.safetensors",
/// "consolidated.03.safetensors", also .pth (Meta), "rank_3", "mp_rank_03"; nullopt for other
/// names.
std::optional<RankName> parse_rank_name(std::string_view name);

/// Parses a numbered part, "model-00001-of-00003", into stem and count. A rank in front of it, as
/// in torch's "shard-00002-model-00001-of-00003", does not count. Nullopt for other names.
std::optional<std::pair<std::string, i64>> parse_part_name(std::string_view name);

/// Folders "rank_0", "rank_1", ... inside a folder, ordered by rank; empty if there are none, or if
/// two have the same rank.
std::vector<std::string> rank_folders(const std::string& folder);

}  // namespace shardtool::check
