#include "tests/api/planning/searched.h"

#include "lib/api/catalogue/profiles.h"
#include "tests/api/planning/stored_model.h"
#include "tests/mapping/models.h"

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

}  // namespace shardtool::api::searched
