#pragma once

#include <string>

namespace shardtool::api {

/// Returns the bits of "bfloat16", "bf16", "fp8", "int8", ...; throws kUsage with all known names.
int dtype_bits(const std::string& name);

}  // namespace shardtool::api
