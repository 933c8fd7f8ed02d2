#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/field/field.h"
#include "lib/base/dtype.h"

namespace shardtool::kernels {

/// Map from stored elements to residues.
enum class NumberMap {
  kBits,   ///< the stored bits as an unsigned integer: injective up to 32 bits, keeps -0 and NaN
           ///< distinct
  kValue,  ///< m 2^e: a homomorphism of the dyadic rationals, the same in every exact dtype
};

/// Returns true for number types of whole bytes (not sub-byte types, not complex).
bool is_computable(Dtype dtype);

/// Decodes `n` elements exactly; NaN and infinities are kept. Formats: IEEE 754 and the OCP 8-bit
/// specification; E4M3 has no infinities, E8M0 is 2^(x-127). Requires is_computable(dtype).
void to_doubles(Dtype dtype, const std::byte* elements, i64 n, double* values);
void to_floats(Dtype dtype, const std::byte* elements, i64 n, float* values);

/// Maps `n` elements to residues. NaN and infinities have no value, so their bits are used.
void to_residues(Dtype dtype, NumberMap map, const std::byte* elements, i64 n, Field* residues);

/// Returns the residue of a finite double, m 2^e.
Field residue_of(double value);

}  // namespace shardtool::kernels
