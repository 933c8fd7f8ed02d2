#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "kernels/device/array.h"
#include "lib/base/checked.h"
#include "lib/index/axis_map.h"

namespace shardtool::ops {

/// A device's part of a value: the features in the map, for every token.
///
/// V1 data is tokens x features.local_size(), row-major
template <class N>
struct Part {
  index::AxisMap features;
  kernels::Array<N> data;

  i64 width() const { return features.local_size(); }
  const N* row(i64 token) const { return data.data() + token * width(); }
  N* row(i64 token) { return data.data() + token * width(); }
};

template <class N>
Part<N> empty_part(index::AxisMap features, i64 tokens) {
  const auto size = static_cast<size_t>(tokens * features.local_size());
  return {std::move(features), kernels::Array<N>(size)};
}

/// Returns, for every local index of `wanted`, the local index of its element in `had`, or -1 for
/// padding. Throws kUnsupported, naming `what`, if `had` lacks an element.
std::vector<i64> positions_of(const index::AxisMap& wanted, const index::AxisMap& had,
                              const std::string& what);

/// Returns the features of a part that `wanted` contains, in its order, with zeros for padding.
template <class N>
Part<N> aligned(const Part<N>& part, const index::AxisMap& wanted, i64 tokens,
                const std::string& what) {
  if (part.features == wanted) return part;
  const std::vector<i64> from = positions_of(wanted, part.features, what);
  Part<N> result = empty_part<N>(wanted, tokens);
  for (i64 t = 0; t < tokens; ++t) {
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] >= 0) result.row(t)[i] = part.row(t)[from[i]];
    }
  }
  return result;
}

}  // namespace shardtool::ops
