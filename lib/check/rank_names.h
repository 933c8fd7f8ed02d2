#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::check {

/// Which device's file a name says it is, in the ways that engines number them.
struct RankName {
  i64 rank = 0;
  std::optional<i64> part;   ///< of that rank's files, from 0
  std::optional<i64> ranks;  ///< how many there are, where the name says it
};

/// "model-rank-3-part-0.safetensors" (vLLM, ours), "rank3.safetensors" (TensorRT-LLM),
/// "model3-mp8.safetensors" (DeepSeek), "pytorch_model-TP-003.safetensors", "rank_3", "mp_rank_03";
/// nothing for other names.
std::optional<RankName> parse_rank_name(std::string_view name);

/// Parts of one numbering, "model-00001-of-00003": the stem and the count. Nothing for other names.
std::optional<std::pair<std::string, i64>> parse_part_name(std::string_view name);

/// The folders "rank_0", "rank_1", ... inside a folder, in the order of the ranks; empty when there
/// are none, or when one of them cannot be told from another.
std::vector<std::string> rank_folders(const std::string& folder);

}  // namespace shardtool::check
