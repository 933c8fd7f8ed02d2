#pragma once

#include <utility>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::plan {

/// Measured microseconds by bytes.
///
/// T1 two points or more, the bytes rise, the times do not fall
using TimeTable = std::vector<std::pair<i64, double>>;

/// The time at a size, log-log between points; below the first its latency, above the last its
/// bandwidth.
double us_at(const TimeTable& table, i64 bytes);

/// Bytes per second at the largest size.
double bytes_per_s(const TimeTable& table);

/// Measured points as a table: a time that is below that of fewer bytes is taken to be as long.
TimeTable rising(std::vector<std::pair<i64, double>> points);

}  // namespace shardtool::plan
