#pragma once

#include "lib/base/checked.h"

namespace shardtool::plan {

/// Bytes of `count` times `elements` of `bits` bits. Throws kLimit when it overflows.
i64 bytes_of(i64 elements, int bits, i64 count = 1);
/// bytes * count. Throws kLimit when it overflows.
i64 times(i64 bytes, i64 count);
/// sum += bytes. Throws kLimit when it overflows.
void add_bytes(i64& sum, i64 bytes);

}  // namespace shardtool::plan
