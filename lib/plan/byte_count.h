#pragma once

#include "lib/base/checked.h"

namespace shardtool::plan {

/// Bytes of `count` times `elements` of `bits` bits. Throws kLimit on overflow.
i64 bytes_of(i64 elements, int bits, i64 count = 1);
/// Returns bytes * count. Throws kLimit on overflow.
i64 times(i64 bytes, i64 count);
/// Computes sum += bytes. Throws kLimit on overflow.
void add_bytes(i64& sum, i64 bytes);

}  // namespace shardtool::plan
