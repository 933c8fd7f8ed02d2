#pragma once

#include <cstddef>

#include "lib/base/checked.h"
#include "lib/base/dtype.h"

namespace shardtool::kernels {

/// Whether floats can be stored so: BF16, F16 or F32.
bool is_float_storage(Dtype dtype);

/// `n` floats as stored elements, each the nearest one, of two the even one; beyond the largest it
/// is infinity, and NaN stays NaN. Requires is_float_storage(dtype).
void from_floats(Dtype dtype, const float* values, i64 n, std::byte* elements);

}  // namespace shardtool::kernels
