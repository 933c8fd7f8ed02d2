#pragma once

#include <optional>
#include <vector>

#include "shardtool/layout/layout.h"
#include "shardtool/mapping/companions.h"

namespace shardtool::mapping {

/// How the values that a device stores differ from those of the tensor: integers by an addend,
/// floating-point numbers by a power of two. stored = logical + addend, stored = logical /
/// 2^halvings.
struct ValueShift {
  std::vector<i64> addends;              ///< one for all elements, or one per element; empty: none
  std::optional<i64> stored_below = {};  ///< stored values are 0 or more and less than this
  i64 halvings = 0;

  bool operator==(const ValueShift&) const = default;
};

/// The shifts of a companion, one per device that holds it (`member.ranks()`); empty when its
/// values are plain. Throws kStrategy when a device has several runs of the grouped axis.
std::vector<ValueShift> value_shifts(const CompanionSpec& spec, const layout::Layout& leader,
                                     const layout::Layout& member, const CompanionSizes& sizes);

}  // namespace shardtool::mapping
