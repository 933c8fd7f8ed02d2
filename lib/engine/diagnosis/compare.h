#pragma once

#include <utility>
#include <vector>

#include "kernels/compare/compare.h"
#include "kernels/device/workbench.h"
#include "lib/engine/run/part.h"
#include "lib/engine/side.h"

namespace shardtool::engine {

/// Differences between the parts of a value and the whole value.
struct ValueDifference {
  i64 checked = 0;
  i64 mismatches = 0;
  double worst = 0;  ///< floats: largest |difference| over the root mean square of the whole
  i64 rank = -1;     ///< of the first mismatch, like token and feature
  i64 token = -1;
  i64 feature = -1;
  bool has_nan = false;
};

/// Compares every part with its features of the whole value. Residues must be equal; floats
/// mismatch if they differ by more than `tolerance` times the root mean square. NaN equals no
/// number.
template <class N>
ValueDifference compare(const Part<N>& whole, const Placed<N>& parts, i64 tokens, double tolerance);

/// compare() on an accelerator, queued when it is made. The same result, which is fetched later.
template <class N>
class PendingComparison {
 public:
  PendingComparison(kernels::Workbench& bench, const Part<N>& whole, const Placed<N>& parts,
                    i64 tokens, double tolerance);
  /// Waits for the comparison.
  ValueDifference result() const;

 private:
  std::vector<std::pair<i64, index::AxisMap>> parts_;  ///< rank and features, in the order of ranks
  i64 tokens_ = 0;
  kernels::Array<kernels::Disagreement> found_;  ///< for each part
};

/// Compares every part with the expected part of its device bit by bit, ignoring padding; a NaN
/// equals one with the same bits. `worst` is relative to the root mean square of all expected
/// parts. Throws kUnsupported if there is no expected part with the same features.
template <class N>
ValueDifference compare_bits(const Placed<N>& expected, const Placed<N>& parts, i64 tokens);

}  // namespace shardtool::engine
