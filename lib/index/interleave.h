#pragma once

#include <optional>

#include "lib/index/axis_map.h"

namespace shardtool::index {

/// Permutation of [0, n) that takes the halves of every unit in turn: index 2j + s of a unit is
/// index s * unit / 2 + j. Rotary embeddings of Meta's models pair neighbours, those of
/// transformers pair the halves of a head. Requires an even unit > 0 that divides n (kInternal).
AxisMap interleaving(i64 n, i64 unit);

/// Reorders the local indices of every unit: compose(a, interleaving(a.local_size(), unit)).
/// Nullopt if a piece of `a` is not whole units on both sides, or there is padding.
std::optional<AxisMap> interleave(const AxisMap& a, i64 unit);

}  // namespace shardtool::index
