#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lib/base/checked.h"

/// The choice among ways to run each layer, under a budget of memory for all layers together.
namespace shardtool::plan {

/// A way to run a layer: more bytes for less time.
struct LayerWay {
  i64 bytes = 0;
  double us = 0;
};

struct ChosenWays {
  std::vector<size_t> ways;  ///< of every layer, an index into its ways
  i64 bytes = 0;
  double us = 0;
};

/// Returns the ways that take the least time together, among those with at most `budget` bytes
/// together; nullopt if not even the smallest ways fit. Exact: dynamic programming over the layers
/// keeps every pair of bytes and time that no other one beats in both, and drops those that a bound
/// of the layers to come (a Lagrangian) keeps from being the best. Requires that every layer has a
/// way, bytes and times of at least 0, and sums below 2^63. Throws kLimit above kMostPartialSums.
std::optional<ChosenWays> fastest_ways(std::span<const std::vector<LayerWay>> layers, i64 budget);

/// Limit on the pairs that fastest_ways keeps, far above real use.
inline constexpr size_t kMostPartialSums = 20'000'000;

}  // namespace shardtool::plan
