#pragma once

#include <optional>
#include <string>

#include "shardtool/mapping/config.h"
#include "shardtool/mapping/mapping.h"

namespace shardtool::mapping {

/// How a model's weights are stored, by its config.json: quant_method, and what decides the form of
/// the tensors: "gptq", "gptq/desc_act", "awq/gemm", "fp8/block", "fp8/tensor",
/// "compressed-tensors/pack-quantized", "modelopt/NVFP4", "bitsandbytes/4bit". Nothing when there
/// is no quantization_config.
std::optional<std::string> quantization_tag(const ModelConfig& config);

/// The mapping, with the family of quantised tensors that the config calls for as its farthest
/// document. The same mapping when the model is not quantised, or when a document of the mapping
/// lists the tag under "quantization". Throws kUnsupported for a tag that no family knows, and for
/// a family that is refused.
Mapping with_quantization(const Mapping& mapping, const ModelConfig* config);

}  // namespace shardtool::mapping
