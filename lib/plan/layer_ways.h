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

/// Returns ways that fit into `budget` at each of several moments. Between these the bytes of a
/// way differ, and not its time; ChosenWays::bytes are the most at any of them. With one moment
/// these are the fastest ways. With more they are the fastest ones of the first moment, under a
/// budget that is lowered until they fit at all moments, or else the smallest ones. Returns nullopt
/// if not even the smallest ways fit. Requires at least one moment, what fastest_ways requires at
/// each, and that the smallest way of a layer at the first one is so at all. Throws as fastest_ways
/// does.
std::optional<ChosenWays> fitting_ways(std::span<const std::vector<std::vector<LayerWay>>> moments,
                                       i64 budget);

/// Returns the smallest way of every layer, and the most bytes that they take at any moment.
ChosenWays smallest_ways(std::span<const std::vector<std::vector<LayerWay>>> moments);

/// Limit on the pairs that fastest_ways keeps, far above real use.
inline constexpr size_t kMostPartialSums = 20'000'000;

}  // namespace shardtool::plan
