#pragma once

#include <optional>
#include <vector>

#include "lib/layout/layout.h"

namespace shardtool::engine {

/// Returns the global indices of local ones [begin, end); kPadding for padding.
inline constexpr i64 kPadding = -1;
std::vector<i64> globals_of(const index::AxisMap& map, i64 begin, i64 end);

/// Locates a weight's scales, zeros or words on one device: maps indices of a weight's axis to
/// those of the stored part, by the part's layout. Blocks may be shared, refined or whole.
class PartAxis {
 public:
  /// `unit` is the number of weight indices per index of the whole part, for an axis whose layout
  /// counts stored indices.
  PartAxis(const layout::Layout& layout, size_t axis, i64 rank, i64 unit);

  /// Returns the local index for an index of the weight, or nullopt if the device lacks it.
  std::optional<i64> of_weight(i64 index) const { return local_(index / block_); }
  /// Returns a local index with the content of index `stored` of the whole part.
  std::optional<i64> of_stored(i64 stored) const;

  i64 local_size() const { return local_.global_size(); }
  /// Number of weight indices per index of the whole part.
  i64 unit() const { return block_ * refinement_; }

 private:
  index::AxisMap local_;  ///< block -> local index
  i64 refinement_, block_;
};

}  // namespace shardtool::engine
