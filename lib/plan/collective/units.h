#pragma once

namespace shardtool::plan {

constexpr double kGb = 1e9;                        ///< bytes
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;  ///< bytes
constexpr double kBytesPerUsOfGb = 1e3;            ///< 1 GB/s in bytes per us

}  // namespace shardtool::plan
