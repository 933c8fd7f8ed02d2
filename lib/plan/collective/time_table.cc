#include "lib/plan/collective/time_table.h"

#include <algorithm>
#include <cmath>

namespace shardtool::plan {

double us_at(const TimeTable& table, i64 bytes) {
  if (bytes <= table.front().first) return table.front().second;
  const double size = static_cast<double>(bytes);
  const auto above = std::find_if(table.begin(), table.end(),
                                  [bytes](const auto& point) { return point.first >= bytes; });
  if (above == table.end()) {
    return table.back().second * size / static_cast<double>(table.back().first);
  }
  const auto below = std::prev(above);
  const double x0 = std::log(static_cast<double>(below->first));
  const double x1 = std::log(static_cast<double>(above->first));
  const double at = (std::log(size) - x0) / (x1 - x0);
  return std::exp(std::log(below->second) * (1 - at) + std::log(above->second) * at);
}

double bytes_per_s(const TimeTable& table) {
  return static_cast<double>(table.back().first) / table.back().second * kUsPerSecond;
}

TimeTable rising(std::vector<std::pair<i64, double>> points) {
  std::sort(points.begin(), points.end());
  for (size_t i = 1; i < points.size(); ++i) {
    points[i].second = std::max(points[i].second, points[i - 1].second);
  }
  return points;
}

}  // namespace shardtool::plan
