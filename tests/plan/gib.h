#pragma once

namespace shardtool {

inline constexpr double kGib = 1024.0 * 1024 * 1024;

}  // namespace shardtool
