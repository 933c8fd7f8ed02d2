#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/field/field.h"
#include "lib/base/dtype.h"

namespace shardtool::kernels {

/// How stored elements become residues.
enum class NumberMap {
  kBits,   ///< the stored bits as an unsigned integer: injective up to 32 bits; sees -0 and NaN
  kValue,  ///< m 2^e: a homomorphism of the dyadic rationals, the same in every exact dtype
};

/// Whether elements of this dtype are numbers of whole bytes that can be computed with.
bool is_computable(Dtype dtype);

/// The values of `n` elements, exactly; NaN and infinities stay what they are. The formats are
/// those of IEEE 754 and of the OCP 8-bit specification; E4M3 has no infinities, E8M0 is 2^(x-127).
/// Requires is_computable(dtype).
void to_doubles(Dtype dtype, const std::byte* elements, i64 n, double* values);
void to_floats(Dtype dtype, const std::byte* elements, i64 n, float* values);

/// The residues of `n` elements. NaN and infinities, which have no value, count as their bits.
void to_residues(Dtype dtype, NumberMap map, const std::byte* elements, i64 n, Field* residues);

/// The residue of a finite double, m 2^e.
Field residue_of(double value);

}  // namespace shardtool::kernels
