#pragma once

#include <span>
#include <vector>

#include "lib/index/axis_map.h"

namespace shardtool::index {

/// Local index at which a segment begins in map number `map`, whose image contains the segment.
struct Claim {
  int map = 0;
  i64 local = 0;
};

/// One axis, cut into segments at every piece boundary of several maps. Each segment lists the maps
/// that contain it.
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

  /// Indexes all maps. O(p log p + claims) for p pieces in total. Throws kLimit above kMostClaims
  /// claims.
  explicit AxisIndex(std::span<const AxisMap> maps);
  /// Indexes only the maps with these numbers, which are ascending. Claims use the same numbers.
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
