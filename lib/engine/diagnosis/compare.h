#pragma once

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

/// Compares every part with the expected part of its device bit by bit, ignoring padding; a NaN
/// equals one with the same bits. `worst` is relative to the root mean square of all expected
/// parts. Throws kUnsupported if there is no expected part with the same features.
template <class N>
ValueDifference compare_bits(const Placed<N>& expected, const Placed<N>& parts, i64 tokens);

}  // namespace shardtool::engine
