#include <filesystem>

#include "tests/check/broken_checkpoints.h"
#include "tests/golden/models.h"

namespace shardtool::test {
namespace {

using check::CheckRule;

/// Makes a copy of the sample with one text of its config.json replaced.
auto configured(const std::string& from, const std::string& to) {
  return [from, to](const TempFolder& folder) {
    const std::string model = copy_sample(folder);
    edit(model + "/config.json", from, to);
    return options_for(model);
  };
}

/// Makes a golden model with one text of its config.json replaced.
auto configured_golden(const std::string& name, const std::string& from, const std::string& to) {
  return [name, from, to](const TempFolder& folder) {
    const std::string model = folder / "model";
    std::filesystem::create_directory(model);
    golden::write_model(name, model);
    edit(model + "/config.json", from, to);
    return options_for(model);
  };
}

/// Makes a model of tensors and a config.json.
auto model(std::vector<WrittenTensor> tensors, const std::string& config = "{}") {
  return [tensors, config](const TempFolder& folder) {
    write_tensors(folder, "model.safetensors", tensors);
    folder.write("config.json", config);
    return options_for(folder.path());
  };
}

const std::string kBlocks =
    R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [4, 4]}})";

const std::string kGptq3 = R"({"quantization_config":
    {"quant_method": "gptq", "bits": 3, "group_size": 32, "desc_act": false}})";

/// Weights of compressed-tensors that have one integer per element.
std::string integers(const std::string& weights) {
  return R"({"quantization_config": {"quant_method": "compressed-tensors",
    "format": "int-quantized", "config_groups": {"group_0": {"weights": {)" +
         weights + "}}}}}";
}

}  // namespace

std::vector<Broken> broken_models() {
  return {
      {CheckRule::kHeads, configured(R"("num_key_value_heads": 2)", R"("num_key_value_heads": 4)")},
      {CheckRule::kHiddenSize, configured(R"("hidden_size": 64)", R"("hidden_size": 128)")},
      {CheckRule::kVocabSize, configured(R"("vocab_size": 1000)", R"("vocab_size": 1001)")},
      {CheckRule::kVocabPadding, configured(R"("vocab_size": 1000)", R"("vocab_size": 999)")},
      {CheckRule::kMissingLayer,
       configured(R"("num_hidden_layers": 2)", R"("num_hidden_layers": 3)")},
      {CheckRule::kExtraLayer,
       configured(R"("num_hidden_layers": 2)", R"("num_hidden_layers": 1)")},
      {CheckRule::kLayerTensor, model({{"model.layers.0.a", "F32", {1}},
                                       {"model.layers.0.b", "F32", {1}},
                                       {"model.layers.1.a", "F32", {1}}})},
      {CheckRule::kMissingExpert, model({{"model.layers.0.mlp.experts.0.w", "F32", {1}},
                                         {"model.layers.0.mlp.experts.2.w", "F32", {1}}},
                                        R"({"num_experts": 3})")},
      {CheckRule::kTiedTwice,
       configured(R"("tie_word_embeddings": false)", R"("tie_word_embeddings": true)")},
      {CheckRule::kHeadMissing, model({{"model.embed_tokens.weight", "F32", {2, 2}}},
                                      R"({"architectures": ["XForCausalLM"],
                                     "tie_word_embeddings": false})")},
      {CheckRule::kScaleAlone, model({{"a.weight_scale_inv", "F32", {1, 1}}})},
      {CheckRule::kScaleAlone, model({{"a.scale", "F8_E8M0", {1, 1}}})},
      {CheckRule::kScaleMissing, model({{"a.weight", "F8_E4M3", {4, 4}}}, kBlocks)},
      {CheckRule::kScaleMissing, model({{"a.weight", "I8", {4, 4}}}, kBlocks)},
      {CheckRule::kScaleShape,
       model({{"a.weight", "F8_E4M3", {6, 4}}, {"a.weight_scale_inv", "F32", {1, 1}}}, kBlocks)},
      {CheckRule::kScaleShape,
       model({{"a.weight", "F8_E4M3", {6, 4}}, {"a.scale", "F8_E8M0", {1, 1}}}, kBlocks)},
      {CheckRule::kScaleShape,
       model({{"a.weight", "F8_E4M3", {4, 4}}, {"a.weight_scale", "F32", {}}}, kBlocks)},
      {CheckRule::kScaleShape,
       model({{"a.weight", "F8_E4M3", {4, 4}}, {"a.weight_scale_inv", "I32", {1, 1}}}, kBlocks)},
      {CheckRule::kScaleShape,
       model({{"a.weight", "U8", {4, 4}}, {"a.weight_scale_inv", "F32", {1, 1}}}, kBlocks)},
      {CheckRule::kScaleShape,
       model({{"a.weight", "U8", {4, 8}}, {"a.weight_scale", "F32", {4, 1}}},
             integers(R"("strategy": "channel", "symmetric": true)"))},
      {CheckRule::kScaleShape,
       model({{"a.weight", "F8_E4M3", {4, 4}}, {"a.weight_scale_inv", "F32", {1, 1}}})},
      {CheckRule::kScaleMissing,
       model({{"a.weight", "I8", {4, 8}}, {"a.weight_scale", "F32", {4, 1}}},
             integers(R"("strategy": "channel", "symmetric": false)"))},
      {CheckRule::kScaleShape,
       model({{"a.weight", "I8", {4, 8}}, {"a.weight_scale", "F32", {4, 1}}},
             integers(R"("strategy": "group", "group_size": 4, "symmetric": true)"))},
      {CheckRule::kScaleShape,
       model({{"a.weight", "I8", {4, 8}}, {"a.weight_scale", "F32", {4, 2}}},
             integers(R"("strategy": "block", "block_structure": [2, 4], "symmetric": true)"))},
      {CheckRule::kScaleShape,
       model({{"a.weight", "I8", {4, 8}}, {"a.weight_scale", "F32", {3, 1}}},
             integers(R"("strategy": "channel", "symmetric": true)"))},
      {CheckRule::kPackedForm, model({{"a.qweight", "I32", {3, 32}},
                                      {"a.qzeros", "I32", {1, 3}},
                                      {"a.scales", "F16", {1, 32}}},
                                     kGptq3)},
      {CheckRule::kBlockSizes, model({{"l.mlp.gate_proj.weight", "F8_E4M3", {12, 4}},
                                      {"l.mlp.gate_proj.weight_scale_inv", "F32", {3, 1}}},
                                     kBlocks)},
      {CheckRule::kIntermediateSize,
       configured(R"("intermediate_size": 176)", R"("intermediate_size": 192)")},
      {CheckRule::kSize, configured_golden("qwen3_moe", R"("moe_intermediate_size": 12)",
                                           R"("moe_intermediate_size": 16)")},
      {CheckRule::kTensorMissing,
       configured(R"("model_type": "llama")", R"("model_type": "qwen3")")},
      {CheckRule::kConfigInvalid, configured(R"("hidden_size": 64)", R"("hidden_size": 0)")},
      {CheckRule::kConfigInvalid, configured("\"vocab_size\": 1000,", "\"vocab_size\": 1000,,")},
  };
}

}  // namespace shardtool::test
