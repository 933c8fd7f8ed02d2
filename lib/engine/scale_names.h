#pragma once

#include <array>
#include <string_view>

namespace shardtool::engine {

/// What stands behind a quantised weight's name in that of its scales: DeepSeek's word, and vLLM's.
inline constexpr std::array<std::string_view, 2> kScaleSuffixes{"_scale_inv", "_scale"};

}  // namespace shardtool::engine
