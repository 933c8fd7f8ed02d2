#pragma once

#include <utility>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::plan {

/// The planner's times are in microseconds.
inline constexpr double kUsPerSecond = 1e6;

/// Measured microseconds by bytes.
///
/// T1 two points or more, the bytes rise, the times do not fall
using TimeTable = std::vector<std::pair<i64, double>>;

/// Time at a size, interpolated log-log between points; constant below the first, at the last one's
/// bandwidth above it.
double us_at(const TimeTable& table, i64 bytes);

/// Bytes per second at the largest size.
double bytes_per_s(const TimeTable& table);

/// Sorts measured points into a table and raises each time to at least that of fewer bytes.
TimeTable rising(std::vector<std::pair<i64, double>> points);

}  // namespace shardtool::plan
