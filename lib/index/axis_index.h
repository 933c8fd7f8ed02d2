#pragma once

#include <span>
#include <vector>

#include "lib/index/axis_map.h"

namespace shardtool::index {

/// Map number `map` contains a segment; the segment starts at local index `local` of that map.
struct Claim {
  int map = 0;
  i64 local = 0;
};

/// One axis cut at every piece boundary of some maps of a list.
///
///     map 0   |-----A-----|
///     map 1         |-----B-----|
///     segments|  0  |  1  |  2  |        claims {0}, {0, 1}, {1}
///
/// S1 segments are disjoint and ascending; their union is the union of all images
/// S2 every segment has at least one claim; its claims are in ascending map number
class AxisIndex {
 public:
  struct Segment {
    i64 begin = 0;
    i64 end = 0;
    std::span<const Claim> claims;
  };

  static constexpr size_t kMostClaims = size_t{1} << 24;

  /// Indexes all maps. O(p log p + claims) for p pieces in total. Throws kLimit if maps overlap in
  /// more than kMostClaims claims.
  explicit AxisIndex(std::span<const AxisMap> maps);
  /// Indexes the maps of these numbers, which ascend; claims name them by their numbers in `maps`.
  AxisIndex(std::span<const AxisMap> maps, std::span<const int> numbers);
  AxisIndex(const AxisIndex&) = delete;
  AxisIndex& operator=(const AxisIndex&) = delete;
  AxisIndex(AxisIndex&&) = default;
  AxisIndex& operator=(AxisIndex&&) = default;

  std::span<const Segment> segments() const { return segments_; }

 private:
  std::vector<Claim> claims_;
  std::vector<Segment> segments_;
};

}  // namespace shardtool::index
