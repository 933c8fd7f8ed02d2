#pragma once

#include <set>
#include <string>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::mapping {

/// Numbers that are missing from a set.
struct MissingNumbers {
  i64 count = 0;
  std::vector<i64> first;  ///< the smallest five of them

  bool empty() const { return count == 0; }
};

/// Returns the numbers of 0 .. size-1 that are not present. The time depends on `present` alone,
/// since the size comes from a file and may be huge.
MissingNumbers missing_numbers(const std::set<i64>& present, i64 size);

/// Formats as "2, 3, 5, 6, 8 and 9 more".
std::string to_string(const MissingNumbers& missing);

}  // namespace shardtool::mapping
