#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/mapping/resolve/axis_table.h"
#include "lib/mapping/resolve/resolution.h"

namespace shardtool::mapping {

/// Counts the tensors of each cut: each way in which an axis' units were distributed.
class CutLedger {
 public:
  /// `axes` must outlive the ledger.
  CutLedger(const AxisTable& axes, bool require_even, bool is_for_engine = false)
      : axes_(axes), require_even_(require_even), is_for_engine_(is_for_engine) {}

  /// Returns the entry of a cut. Throws kNotDivisible if its parts are unequal and the axis,
  /// require_even or is_for_engine (ResolveOptions) refuses that.
  size_t enter(const UnitCut& cut);
  /// Counts a tensor for an entry.
  void count(size_t entry, std::string_view tensor);
  /// The cuts with unequal parts, in the order of their first `enter`.
  std::vector<UnevenCut> uneven() const;

 private:
  const AxisTable& axes_;
  bool require_even_;
  bool is_for_engine_;
  std::vector<UnevenCut> entries_;
  std::map<std::pair<std::string, std::string>, size_t> by_cut_;  ///< by axis and expression
};

}  // namespace shardtool::mapping
