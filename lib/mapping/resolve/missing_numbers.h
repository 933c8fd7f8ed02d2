#pragma once

#include <set>
#include <string>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::mapping {

/// The numbers below a size that a set lacks.
struct MissingNumbers {
  i64 count = 0;
  std::vector<i64> first;  ///< the smallest five

  bool empty() const { return count == 0; }
};

/// The numbers of 0 .. size-1 that are not present. Its cost depends on what is present, never on
/// the size, which comes from a file.
MissingNumbers missing_numbers(const std::set<i64>& present, i64 size);

/// "2, 3, 5, 6, 8 and 9 more".
std::string to_string(const MissingNumbers& missing);

}  // namespace shardtool::mapping
