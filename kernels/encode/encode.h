#pragma once

#include <cstddef>

#include "lib/base/checked.h"
#include "lib/base/dtype.h"

namespace shardtool::kernels {

/// Returns true for BF16, F16 and F32.
bool is_float_storage(Dtype dtype);

/// Encodes `n` floats, rounding to nearest even; overflow gives infinity, NaN stays NaN. Requires
/// is_float_storage(dtype).
void from_floats(Dtype dtype, const float* values, i64 n, std::byte* elements);

}  // namespace shardtool::kernels
