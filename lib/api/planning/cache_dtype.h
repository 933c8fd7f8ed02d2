#pragma once

#include <optional>
#include <string>

#include "lib/mapping/document/config.h"

namespace shardtool::api {

/// Returns the bits of "bfloat16", "bf16", "fp8", "int8", ...; throws kUsage with all known names.
int dtype_bits(const std::string& name);

/// Returns the bits of a cached element that the quantisation of config.json asks for:
/// quantization_config.kv_cache_scheme.num_bits (compressed-tensors; ModelOpt since 0.29), or
/// quantization_config.kv_cache_quant_algo (ModelOpt: "FP8", "INT8", "NVFP4"). Returns nullopt if
/// it asks for nothing. Throws kConfig for another algorithm.
std::optional<int> quantised_cache_bits(const mapping::ModelConfig& config);

}  // namespace shardtool::api
