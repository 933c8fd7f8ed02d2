#include "tests/api/planning/searched.h"

#include <fmt/format.h>

#include "lib/api/catalogue/profiles.h"
#include "tests/api/planning/stored_model.h"

namespace shardtool::api::searched {

const std::string& dense() {
  static const StoredModel model(mapping::tiny_llama({.layers = 4, .kv_heads = 4}));
  return model.path();
}

const std::string& dense_in_bf16() {
  static const StoredModel model([] {
    mapping::TinyModel llama = mapping::tiny_llama({.layers = 4, .kv_heads = 4});
    for (TensorSpec& spec : llama.tensors) spec.dtype = Dtype::kBF16;
    return llama;
  }());
  return model.path();
}

mapping::TinyModel blocks(i64 size) {
  mapping::TinyModel llama = mapping::tiny_llama({.layers = 4, .kv_heads = 4});
  std::vector<TensorSpec> scales;
  for (TensorSpec& spec : llama.tensors) {
    if (!spec.name.ends_with("_proj.weight")) continue;
    spec.dtype = Dtype::kF8E4M3;
    scales.push_back({spec.name + "_scale_inv",
                      Dtype::kF32,
                      {ceil_div(spec.shape[0], size), ceil_div(spec.shape[1], size)}});
  }
  llama.tensors.insert(llama.tensors.end(), scales.begin(), scales.end());
  llama.config.insert(1, fmt::format(R"("quantization_config": {{"quant_method": "fp8",
                                        "weight_block_size": [{0}, {0}]}},)",
                                     size));
  return llama;
}

const std::string& with_experts() {
  static const StoredModel model(mapping::tiny_mixtral({.layers = 2, .kv_heads = 4}, 4));
  return model.path();
}

SearchOptions options_for(const std::string& path) {
  SearchOptions options;
  options.plan.sources = {path};
  options.plan.hardware = load_profile("h100-sxm");
  options.plan.device.bytes = options.plan.hardware->usable_bytes;
  options.plan.device.price_per_hour = 2;
  options.devices = {1, 2, 4};
  options.concurrency = {8};
  options.prompt_len = kPrompt;
  options.answer_len = kAnswer;
  return options;
}

plan::HardwareProfile products_alone() {
  plan::HardwareProfile hardware = load_profile("h100-sxm");
  hardware.rates = plan::Rates{};
  hardware.rates.bf16_tflops = 1;
  hardware.compute_efficiency = 1;
  hardware.memory_gb_per_s = 1e12;
  hardware.launch_us = 0;
  hardware.fabric = plan::Messages{8, 0, 1e12};
  return hardware;
}

}  // namespace shardtool::api::searched
