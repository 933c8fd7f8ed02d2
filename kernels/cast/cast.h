#pragma once

#include <cstddef>

#include "lib/base/checked.h"
#include "lib/base/dtype.h"

namespace shardtool::kernels {

/// Counts of the elements of a cast. Every element is in at most one of the last four.
struct CastCounts {
  i64 values = 0;
  i64 rounded = 0;      ///< finite, and the result is another finite number, not zero
  i64 overflowed = 0;   ///< finite, and the result is infinite
  i64 underflowed = 0;  ///< not zero, and the result is zero
  i64 nan = 0;          ///< NaN, and so is the result

  bool is_exact() const { return rounded == 0 && overflowed == 0 && underflowed == 0; }
  CastCounts& operator+=(const CastCounts& other);
  CastCounts& operator-=(const CastCounts& other);
  bool operator==(const CastCounts&) const = default;
};

/// Returns true for F64, F32, F16, BF16 and the 8-bit floats, without E8M0, which is a scale.
bool is_castable(Dtype from);

/// Converts `n` elements to `to`, rounding once to nearest even; a number that is too large becomes
/// infinite. NaN keeps its sign and the upper bits of its payload, and becomes quiet, as F16C and
/// AVX512_BF16 do it. Requires is_castable(from) and is_float_storage(to). The memory may overlap
/// if both begin at one address and `to` is not wider, or if both end at one address and `to` is
/// wider.
///
/// torch 2.13 gives the same bits for every F32, F16, BF16 and OCP 8-bit float except for NaN to
/// BF16, where it writes 0xffff on x86. Its F64 to BF16 or F16 rounds twice, this function once.
CastCounts cast(Dtype from, Dtype to, const std::byte* elements, i64 n, std::byte* result);

}  // namespace shardtool::kernels
