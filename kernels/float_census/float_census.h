#pragma once

#include <cstddef>
#include <span>

#include "lib/base/checked.h"
#include "lib/base/dtype.h"

namespace shardtool::kernels {

/// Counts of NaN and infinite elements of a buffer.
struct FloatCensus {
  i64 nan = 0;
  i64 infinite = 0;
  bool all_zero = true;  ///< all elements are +0 or -0; for other dtypes, all bits are 0

  FloatCensus& operator+=(const FloatCensus& other) {
    nan += other.nan;
    infinite += other.infinite;
    all_zero = all_zero && other.all_zero;
    return *this;
  }
  bool operator==(const FloatCensus&) const = default;
};

/// Counts the elements of `buffer`, a whole number of little-endian elements at any alignment:
///
///     BF16 F16 F32 F64    IEEE 754: all exponent bits set; infinite when the mantissa is zero
///     C64                 two F32, each counted
///     F8_E5M2             the same with 2 bits of mantissa
///     F8_E4M3             no infinities; NaN is 0x7f and 0xff (OCP 8-bit floating point)
///     F8_E8M0             a scale 2^(x - 127): NaN is 0xff; zero is all bits zero
///     F8_E4M3FNUZ, F8_E5M2FNUZ    no infinities; NaN is 0x80, the only -0
///     all others          no NaN, no infinities; only all_zero is computed
FloatCensus float_census(Dtype dtype, std::span<const std::byte> buffer);

}  // namespace shardtool::kernels
