#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"
#include "lib/mapping/document/config.h"

/// Scales and zero points of weights that are stored as one 8-bit number per element: a weight is
/// q * s, or (q - z) * s if it has zero points, with one s and one z for all, per row or per block.
namespace shardtool::model {

/// Returns the possible names of a weight's scales: the suffixes of DeepSeek and vLLM after its
/// name, and DeepSeek V4's suffix instead of "weight".
std::vector<std::string> scale_names(std::string_view weight);

/// Returns the name of a weight's zero points, which not every weight with scales has.
std::string zero_point_name(std::string_view weight);

/// Returns the indices per scale, or per zero point, of an axis of `extent` with `scales` scales;
/// nullopt if they do not fit, or contradict weight_block_size of config.json. `axis` is 0 for rows
/// and 1 for columns. The last block may be smaller, so that the number of scales does not decide
/// the size: config.json does, if it says it.
std::optional<i64> scale_block(const mapping::ModelConfig& config, i64 extent, i64 scales,
                               size_t axis);

}  // namespace shardtool::model
