#pragma once

#include <optional>
#include <string>

#include "lib/mapping/document/config.h"
#include "lib/mapping/mapping.h"

namespace shardtool::mapping {

/// How a model's weights are stored, by its config.json: quant_method, and what decides the form of
/// the tensors: "gptq", "gptq/desc_act", "awq/gemm", "fp8/block", "fp8/tensor",
/// "compressed-tensors/pack-quantized", "compressed-tensors/pack-quantized/act_order",
/// "modelopt/NVFP4", "bitsandbytes/4bit". Nothing when there is no quantization_config.
std::optional<std::string> quantization_tag(const ModelConfig& config);

/// The mapping with the family of tensors that knows the tag as its farthest document; the same
/// mapping when a document of it lists the tag under "quantization". `said_by` names where the tag
/// comes from. Throws kUnsupported for a tag that no family knows, and for a family that is
/// refused.
Mapping with_family(const Mapping& mapping, const std::string& tag, const std::string& said_by);

/// with_family for the config's tag; the same mapping without one.
Mapping with_quantization(const Mapping& mapping, const ModelConfig* config);

/// What an adapter_config.json says: "lora", "lora/fan_in_fan_out", or the lower-case peft_type.
std::string adapter_tag(const ModelConfig& adapter_config);

}  // namespace shardtool::mapping
