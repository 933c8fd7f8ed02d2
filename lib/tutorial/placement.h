#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/layout/axis_expr.h"
#include "lib/tutorial/matrix.h"

namespace shardtool::tutorial {

/// One interval per device, in their order.
///
/// P1  the intervals lie one after another: [0, a) [a, b) ... [z, n)
/// P2  none is empty, unless it was asked for
using Parts = std::vector<Interval>;

/// n units dealt out to devices by one rule of the library; 10 over 4 are 3, 3, 2, 2.
/// Throws kEmptyShard, naming `what`, when a device would get nothing.
Parts parts_of(std::string_view what, i64 n, int devices,
               layout::SplitRule rule = layout::kBalanced);

/// The same where a device may get nothing, as of a small batch.
Parts parts_or_nothing(i64 n, int devices);

/// Where an array lies: every device has all of it, or a part along one axis, or one device has
/// all and the others none (0 rows, 0 columns).
struct Placement {
  enum class Kind { kReplicated, kRows, kColumns, kOwner };
  Kind kind = Kind::kReplicated;
  Parts parts;    ///< of kRows, kColumns
  int owner = 0;  ///< of kOwner
};

Placement replicated();
Placement rows(Parts parts);
Placement columns(Parts parts);
Placement owned_by(int device);

/// What a device holds of an array.
template <Number T>
Matrix<T> cut(const Matrix<T>& whole, const Placement& placement, int device) {
  switch (placement.kind) {
    case Placement::Kind::kReplicated:
      return whole;
    case Placement::Kind::kRows:
      return slice(whole, Axis::kRows, placement.parts[device]);
    case Placement::Kind::kColumns:
      return slice(whole, Axis::kColumns, placement.parts[device]);
    case Placement::Kind::kOwner:
      return placement.owner == device ? whole : Matrix<T>();
  }
  return {};
}

/// The array from what every device holds. Requires one part per device; of replicas the first is
/// taken.
template <Number T>
Matrix<T> assembled(const std::vector<Matrix<T>>& held, const Placement& placement) {
  switch (placement.kind) {
    case Placement::Kind::kReplicated:
      return held.front();
    case Placement::Kind::kRows:
      return joined<T>(held, Axis::kRows);
    case Placement::Kind::kColumns:
      return joined<T>(held, Axis::kColumns);
    case Placement::Kind::kOwner:
      return held[placement.owner];
  }
  return {};
}

}  // namespace shardtool::tutorial
