#pragma once

#include <algorithm>
#include <vector>

namespace shardtool {

/// The middle one, or the mean of the two in the middle. Requires one value or more.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace shardtool
