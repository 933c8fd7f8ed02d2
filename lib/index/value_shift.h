#pragma once

#include <optional>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::index {

/// Difference between the values that a holder stores and those of the tensor: an addend for
/// integers (an index of a quantisation group counts from the holder's first group, the shape of a
/// packed weight is that of the holder's part), a power of two for floating-point numbers.
///
///     stored[l] = logical[place(l)] + addend(l)        stored[l] = logical[place(l)] / 2^halvings
struct ValueShift {
  std::vector<i64> addends = {};         ///< one for all elements, or one per local element
  std::optional<i64> stored_below = {};  ///< exclusive upper bound of the stored values, which are
                                         ///< 0 or more
  i64 halvings = 0;

  bool is_plain() const { return addends.empty() && halvings == 0; }
  bool operator==(const ValueShift&) const = default;
};

}  // namespace shardtool::index
