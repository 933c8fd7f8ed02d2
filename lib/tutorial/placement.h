#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/layout/axis_expr.h"
#include "lib/tutorial/layers/matrix.h"

namespace shardtool::tutorial {

/// One interval per device, in device order.
///
/// P1  the intervals are consecutive: [0, a) [a, b) ... [z, n)
/// P2  all are non-empty, except in parts_or_nothing
using Parts = std::vector<Interval>;

/// Splits n units over the devices by one rule of the library; 10 over 4 are 3, 3, 2, 2. Throws
/// kEmptyShard, naming `what`, if a device would get no unit.
Parts parts_of(std::string_view what, i64 n, int devices,
               layout::SplitRule rule = layout::kBalanced);

/// The same, but allows empty parts, as for a small batch.
Parts parts_or_nothing(i64 n, int devices);

/// MatrixPlacement of an array: whole on every device, cut along one axis, or whole on one device
/// and empty (0 rows, 0 columns) on the others.
struct MatrixPlacement {
  enum class Kind { kReplicated, kRows, kColumns, kOwner };
  Kind kind = Kind::kReplicated;
  Parts parts;    ///< for kRows, kColumns
  int owner = 0;  ///< for kOwner
};

MatrixPlacement replicated();
MatrixPlacement rows(Parts parts);
MatrixPlacement columns(Parts parts);
MatrixPlacement owned_by(int device);

/// Returns a device's part of an array.
template <Number T>
Matrix<T> cut(const Matrix<T>& whole, const MatrixPlacement& placement, int device) {
  switch (placement.kind) {
    case MatrixPlacement::Kind::kReplicated:
      return whole;
    case MatrixPlacement::Kind::kRows:
      return slice(whole, Axis::kRows, placement.parts[device]);
    case MatrixPlacement::Kind::kColumns:
      return slice(whole, Axis::kColumns, placement.parts[device]);
    case MatrixPlacement::Kind::kOwner:
      return placement.owner == device ? whole : Matrix<T>();
  }
  return {};
}

/// Assembles the array from the devices' parts, one per device; uses the first replica.
template <Number T>
Matrix<T> assembled(const std::vector<Matrix<T>>& held, const MatrixPlacement& placement) {
  switch (placement.kind) {
    case MatrixPlacement::Kind::kReplicated:
      return held.front();
    case MatrixPlacement::Kind::kRows:
      return joined<T>(held, Axis::kRows);
    case MatrixPlacement::Kind::kColumns:
      return joined<T>(held, Axis::kColumns);
    case MatrixPlacement::Kind::kOwner:
      return held[placement.owner];
  }
  return {};
}

}  // namespace shardtool::tutorial
