#pragma once

#include "lib/engine/run/part.h"
#include "lib/engine/side.h"

namespace shardtool::engine {

/// How the parts of a value differ from the whole one.
struct Difference {
  i64 checked = 0;
  i64 mismatches = 0;
  double worst = 0;  ///< largest |difference| over the root mean square of the whole; of floats
  i64 rank = -1;     ///< the first mismatch
  i64 token = -1;
  i64 feature = -1;
  bool has_nan = false;
};

/// Compares every part with the features that it has of the whole. Residues are equal or not;
/// floats mismatch where they differ by more than `tolerance` times the root mean square. A NaN
/// equals nothing.
template <class N>
Difference compare(const Part<N>& whole, const Placed<N>& parts, i64 tokens, double tolerance);

/// Compares every part with the expected one of its device, bit by bit, padding aside: a NaN equals
/// one of the same bits. `worst` is over the root mean square of all expected parts. Throws
/// kUnsupported where nothing like it is expected of the device.
template <class N>
Difference compare_bits(const Placed<N>& expected, const Placed<N>& parts, i64 tokens);

}  // namespace shardtool::engine
