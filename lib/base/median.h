#pragma once

#include <algorithm>
#include <vector>

namespace shardtool {

/// Middle value, or mean of the two middle values. Requires at least one value.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace shardtool
