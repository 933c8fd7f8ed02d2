#pragma once

#include <optional>
#include <string>

#include "lib/engine/diagnosis/part_difference.h"

namespace shardtool::engine {

/// Descriptions of changed numbers. Each completes a sentence that begins with the rank, and is
/// nullopt if it does not apply.

/// "is all zeros", "rows [62, 64) are zero".
std::optional<std::string> describe_zeros(const PartDifference& difference);
/// "element [3, 7] is 0.5 instead of 0.25 (1 ulp)", "has 2 NaN, the first at [3, 7]".
std::optional<std::string> describe_single(const PartDifference& difference);
/// "bytes are reversed", "is counted 4 times", "is divided by 2", "has the opposite sign".
std::optional<std::string> describe_factor(const PartDifference& difference);
/// "64 elements differ by 1 ulp", with a note if all are nearer to zero (truncation).
std::optional<std::string> describe_rounding(const PartDifference& difference);
/// "is transposed", "rows [0, 16) x columns [0, 16) are transposed".
std::optional<std::string> describe_transposition(const Side& whole, const Side& shards,
                                                  const PartDifference& difference);
/// Describes the amount of the difference and its first element.
std::string describe_difference(const PartDifference& difference);

}  // namespace shardtool::engine
