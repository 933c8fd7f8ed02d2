#pragma once

#include <array>
#include <cstddef>

#include "kernels/both.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// Maximum number of ranks on one device.
inline constexpr size_t kMostParts = 64;

/// All-reduce of the ranks on one device: y[i] = ((part 0 + part 1) + part 2) + ..., in rank order
/// like comm/reduce.h. y may alias a part. Requires 1 <= parts <= kMostParts.
template <class T>
struct FoldParts {
  std::array<const T*, kMostParts> part{};
  int parts = 0;
  i64 n = 0;
  T* y = nullptr;

  SHARDTOOL_BOTH i64 count() const { return n; }
  SHARDTOOL_BOTH void operator()(i64 i) const {
    T sum = part[0][i];
    for (size_t r = 1; r < static_cast<size_t>(parts); ++r) sum = sum + part[r][i];
    y[i] = sum;
  }
};

}  // namespace shardtool::kernels
