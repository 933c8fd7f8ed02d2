#pragma once

#include <optional>
#include <vector>

#include "lib/layout/layout.h"

namespace shardtool::engine {

/// Global indices of local ones [begin, end); kPadding where there is none.
inline constexpr i64 kPadding = -1;
std::vector<i64> globals_of(const index::AxisMap& map, i64 begin, i64 end);

/// An axis of scales, zeros or words on one device, beside the axis of the weight that it belongs
/// to. Shared blocks, refined ones and whole axes are found where the layout puts them.
class PartAxis {
 public:
  /// `unit`: indices of the weight behind each index of the whole part, for an axis whose layout
  /// counts stored indices.
  PartAxis(const layout::Layout& layout, size_t axis, i64 rank, i64 unit);

  /// The local index that an index of the weight belongs to; nothing where the device lacks it.
  std::optional<i64> of_weight(i64 index) const { return local_(index / block_); }
  /// Any local index that has what index `stored` of the whole part has.
  std::optional<i64> of_stored(i64 stored) const;

  i64 local_size() const { return local_.global_size(); }
  /// Indices of the weight behind each index of the whole part.
  i64 unit() const { return block_ * refinement_; }

 private:
  index::AxisMap local_;  ///< from blocks to local indices
  i64 refinement_, block_;
};

}  // namespace shardtool::engine
