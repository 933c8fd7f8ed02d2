#pragma once

#include <optional>
#include <string>

#include "lib/mapping/document/config.h"
#include "lib/mapping/mapping.h"

namespace shardtool::mapping {

/// Storage format of the weights by config.json: quant_method and the options that change the
/// tensors: "gptq", "gptq/desc_act", "awq/gemm", "fp8/block", "fp8/tensor",
/// "compressed-tensors/pack-quantized", "compressed-tensors/pack-quantized/act_order",
/// "modelopt/NVFP4", "bitsandbytes/4bit". Returns nullopt if config.json has no quant_method.
std::optional<std::string> quantization_tag(const ModelConfig& config);

/// Adds the family of quantised tensors for this tag as the farthest document. Returns the mapping
/// unchanged if one of its documents lists the tag under "quantization". `said_by` names the file
/// with the tag. Throws kUnsupported if no family has the tag, and if the family has "refuse".
Mapping with_family(const Mapping& mapping, const std::string& tag, const std::string& said_by);

/// Calls with_family with the config's tag. Returns the mapping unchanged if the config has no tag.
Mapping with_quantization(const Mapping& mapping, const ModelConfig* config);

/// Returns the tag of an adapter_config.json: "lora", "lora/fan_in_fan_out", or the peft_type in
/// lower case.
std::string adapter_tag(const ModelConfig& adapter_config);

}  // namespace shardtool::mapping
