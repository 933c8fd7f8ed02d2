#pragma once

#include <string>

namespace shardtool::api {

/// Bits of "bfloat16", "bf16", "fp8", "int8", ...; throws kUsage with the names that are known.
int dtype_bits(const std::string& name);

}  // namespace shardtool::api
