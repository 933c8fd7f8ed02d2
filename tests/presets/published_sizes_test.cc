#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/mapping/presets.h"
#include "lib/mapping/quantization.h"
#include "tests/mapping/fixtures.h"

/// Layers of published models at their real sizes, on common meshes.
namespace shardtool::mapping {
namespace {

struct Model {
  ModelConfig config;
  std::vector<TensorSpec> tensors;
};

Resolution resolved(const Model& model, std::string_view mesh) {
  const Mapping preset = load_preset(detect_preset(model.config, model.tensors).value());
  return resolve(with_quantization(preset, &model.config), model.tensors, &model.config,
                 over(mesh));
}

std::string held_by(const Model& model, std::string_view mesh, std::string_view tensor, size_t rank,
                    size_t axis = 0) {
  return held(*at(resolved(model, mesh), model.tensors, tensor).layout, axis).at(rank);
}

std::string refusal(const Model& model, std::string_view mesh) {
  const auto e = error_of([&] { return resolved(model, mesh); });
  return e ? std::string(e->id()) : "";
}

/// A layer of gpt-oss-120b.
Model gpt_oss() {
  const std::string layer = "model.layers.0.";
  const std::string experts = layer + "mlp.experts.";
  std::vector<TensorSpec> tensors = {
      spec(layer + "self_attn.q_proj.weight", {4096, 2880}),
      spec(layer + "self_attn.k_proj.weight", {512, 2880}),
      spec(layer + "self_attn.sinks", {64}),
      spec(experts + "gate_up_proj_blocks", {128, 5760, 90, 16}, Dtype::kU8),
      spec(experts + "gate_up_proj_scales", {128, 5760, 90}, Dtype::kU8),
      spec(experts + "gate_up_proj_bias", {128, 5760}),
      spec(experts + "down_proj_blocks", {128, 2880, 90, 16}, Dtype::kU8),
      spec(experts + "down_proj_scales", {128, 2880, 90}, Dtype::kU8),
      spec(experts + "down_proj_bias", {128, 2880})};
  return {config_of(R"({"architectures": ["GptOssForCausalLM"], "num_attention_heads": 64,
    "num_key_value_heads": 8, "head_dim": 64, "hidden_size": 2880, "num_local_experts": 128,
    "num_hidden_layers": 1, "quantization_config": {"quant_method": "mxfp4"}})"),
          std::move(tensors)};
}

TEST_CASE("gpt-oss: experts over ep on any mesh, over tp where blocks of 32 inputs stay whole") {
  const Model model = gpt_oss();
  const std::string experts = "model.layers.0.mlp.experts.";
  CHECK(held_by(model, "tp=2", experts + "down_proj_blocks", 1, 2) == "[45, 90)");
  CHECK(held_by(model, "tp=2", experts + "gate_up_proj_blocks", 1, 1) == "[2880, 5760)");
  CHECK(held_by(model, "tp=2", experts + "gate_up_proj_bias", 1, 1) == "[2880, 5760)");
  CHECK(held_by(model, "ep=8", experts + "gate_up_proj_scales", 7) == "[112, 128)");
  CHECK(held_by(model, "ep=8,tp=2", "model.layers.0.self_attn.sinks", 3) == "[32, 64)");
  CHECK(refusal(model, "tp=4") == "E0211");  // 720 inputs a device are 22.5 blocks
  CHECK(refusal(model, "tp=8") == "E0211");
}

void add_fp8(std::vector<TensorSpec>& tensors, const std::string& module, i64 rows, i64 columns) {
  tensors.push_back(spec(module + ".weight", {rows, columns}, Dtype::kF8E4M3));
  tensors.push_back(spec(module + ".weight_scale_inv",
                         {ceil_div(rows, 128), ceil_div(columns, 128)}, Dtype::kF32));
}

/// A dense layer and a layer with experts of DeepSeek-V3.
Model deepseek_v3() {
  Model model{config_of(R"({"architectures": ["DeepseekV3ForCausalLM"], "num_attention_heads": 128,
    "num_key_value_heads": 128, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "hidden_size": 7168, "n_routed_experts": 256,
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})"),
              {}};
  const std::string attention = "model.layers.0.self_attn.";
  add_fp8(model.tensors, attention + "q_b_proj", 128 * 192, 1536);
  add_fp8(model.tensors, attention + "kv_a_proj_with_mqa", 576, 7168);
  add_fp8(model.tensors, attention + "kv_b_proj", 128 * 256, 512);
  add_fp8(model.tensors, attention + "o_proj", 7168, 128 * 128);
  add_fp8(model.tensors, "model.layers.0.mlp.gate_proj", 18432, 7168);
  for (int expert = 0; expert < 256; ++expert) {
    const std::string name = fmt::format("model.layers.1.mlp.experts.{}.", expert);
    add_fp8(model.tensors, name + "up_proj", 2048, 7168);
    add_fp8(model.tensors, name + "down_proj", 7168, 2048);
  }
  return model;
}

TEST_CASE("DeepSeek-V3: scales follow their weights, and blocks of 128 are not cut") {
  const Model model = deepseek_v3();
  const std::string attention = "model.layers.0.self_attn.";
  CHECK(held_by(model, "tp=8", attention + "q_b_proj.weight", 1) == "[3072, 6144)");
  CHECK(held_by(model, "tp=8", attention + "q_b_proj.weight_scale_inv", 1) == "[24, 48)");
  CHECK(held_by(model, "tp=8", attention + "kv_a_proj_with_mqa.weight_scale_inv", 1) == "[0, 5)");
  CHECK(held_by(model, "tp=16", "model.layers.1.mlp.experts.9.down_proj.weight_scale_inv", 2, 1) ==
        "[2, 3)");
  CHECK(held_by(model, "ep=32", "model.layers.1.mlp.experts.9.up_proj.weight", 1) == "[0, 2048)");
  CHECK(held_by(model, "ep=32", "model.layers.1.mlp.experts.9.up_proj.weight", 2) == "not here");
  CHECK(refusal(model, "ep=16,tp=16") == "");
  CHECK(refusal(model, "tp=32") == "E0211");  // 18432 / 32 is 576, and 2048 / 32 is half a block
}

TEST_CASE(
    "MiniMax-M2: 1536 features of an expert are 12 blocks of 128, cut over 4 devices and not 8") {
  Model model{config_of(R"({"architectures": ["MiniMaxM2ForCausalLM"], "num_attention_heads": 48,
    "num_key_value_heads": 8, "head_dim": 128, "hidden_size": 3072, "num_local_experts": 256,
    "num_hidden_layers": 1,
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})"),
              {}};
  const std::string layer = "model.layers.0.";
  add_fp8(model.tensors, layer + "self_attn.q_proj", 48 * 128, 3072);
  add_fp8(model.tensors, layer + "self_attn.k_proj", 8 * 128, 3072);
  model.tensors.push_back(spec(layer + "self_attn.q_norm.weight", {6144}));
  for (int expert = 0; expert < 256; ++expert) {
    const std::string name = fmt::format("{}block_sparse_moe.experts.{}.", layer, expert);
    add_fp8(model.tensors, name + "w1", 1536, 3072);
    add_fp8(model.tensors, name + "w2", 3072, 1536);
  }
  const std::string w2 = layer + "block_sparse_moe.experts.255.w2.";
  CHECK(held_by(model, "tp=4", w2 + "weight", 1, 1) == "[384, 768)");
  CHECK(held_by(model, "tp=4", w2 + "weight_scale_inv", 1, 1) == "[3, 6)");
  CHECK(held_by(model, "ep=8", w2 + "weight", 7) == "[0, 3072)");
  CHECK(held_by(model, "tp=4", layer + "self_attn.q_norm.weight", 3) == "[0, 6144)");
  CHECK(refusal(model, "tp=8") == "E0211");  // 192 features a device are one block and a half
  CHECK(refusal(model, "ep=4,tp=4") == "");
}

/// A layer of DeepSeek-V4-Flash: FP8 with scales per 128 x 128; experts with two FP4 numbers per
/// byte and scales per 32 inputs.
Model deepseek_v4() {
  Model model{config_of(R"({"architectures": ["DeepseekV4ForCausalLM"], "num_attention_heads": 64,
    "head_dim": 512, "hidden_size": 4096, "o_groups": 8, "o_lora_rank": 1024,
    "n_routed_experts": 256, "num_hidden_layers": 43,
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})"),
              {spec("layers.0.attn.attn_sink", {64}), spec("layers.0.hc_attn_fn", {24, 16384})}};
  const auto add = [&](const std::string& module, Shape shape, Dtype dtype, i64 rows, i64 columns) {
    const Shape blocks{ceil_div(shape[0], rows), ceil_div(shape[1], columns)};
    model.tensors.push_back(spec(module + ".weight", std::move(shape), dtype));
    model.tensors.push_back(spec(module + ".scale", blocks, Dtype::kF8E8M0));
  };
  add("layers.0.attn.wq_b", {32768, 1024}, Dtype::kF8E4M3, 128, 128);
  add("layers.0.attn.wo_a", {8192, 4096}, Dtype::kF8E4M3, 128, 128);
  add("layers.0.attn.wo_b", {4096, 8192}, Dtype::kF8E4M3, 128, 128);
  add("layers.0.ffn.shared_experts.w2", {4096, 2048}, Dtype::kF8E4M3, 128, 128);
  for (int expert = 0; expert < 256; ++expert) {
    const std::string name = fmt::format("layers.0.ffn.experts.{}.", expert);
    add(name + "w1", {2048, 2048}, Dtype::kI8, 1, 16);
    add(name + "w2", {4096, 1024}, Dtype::kI8, 1, 16);
  }
  return model;
}

TEST_CASE("DeepSeek-V4: groups of heads go with their projections, FP4 experts with their scales") {
  const Model model = deepseek_v4();
  const std::string attention = "layers.0.attn.";
  CHECK(held_by(model, "tp=8", attention + "wq_b.weight", 1) == "[4096, 8192)");
  CHECK(held_by(model, "tp=8", attention + "wq_b.scale", 1) == "[32, 64)");
  CHECK(held_by(model, "tp=8", attention + "attn_sink", 1) == "[8, 16)");
  CHECK(held_by(model, "tp=8", attention + "wo_a.weight", 1) == "[1024, 2048)");
  CHECK(held_by(model, "tp=8", attention + "wo_a.weight", 1, 1) == "[0, 4096)");
  CHECK(held_by(model, "tp=8", attention + "wo_b.scale", 1, 1) == "[8, 16)");
  CHECK(held_by(model, "tp=8", "layers.0.hc_attn_fn", 1, 1) == "[0, 16384)");
  const std::string w2 = "layers.0.ffn.experts.255.w2.";
  CHECK(held_by(model, "tp=8", w2 + "weight", 1, 1) == "[128, 256)");  // 256 inputs
  CHECK(held_by(model, "tp=8", w2 + "scale", 1, 1) == "[8, 16)");
  CHECK(held_by(model, "ep=256", w2 + "scale", 255) == "[0, 4096)");
  CHECK(refusal(model, "ep=16,tp=8") == "");
  CHECK(refusal(model, "tp=16") == "E0210");  // 8 groups
}

TEST_CASE("Phi-4: 40 query heads in 10 groups, whole groups on any number of devices up to 10") {
  const Model model{config_of(R"({"architectures": ["Phi3ForCausalLM"], "hidden_size": 5120,
    "num_attention_heads": 40, "num_key_value_heads": 10, "num_hidden_layers": 1})"),
                    {spec("model.layers.0.self_attn.qkv_proj.weight", {7680, 5120}),
                     spec("model.layers.0.mlp.gate_up_proj.weight", {35840, 5120})}};
  const std::string qkv = "model.layers.0.self_attn.qkv_proj.weight";
  CHECK(held_by(model, "tp=2", qkv, 0) == "[0, 2560) [5120, 5760) [6400, 7040)");
  CHECK(held_by(model, "tp=4", qkv, 3) == "[4096, 5120) [6144, 6400) [7424, 7680)");
  CHECK(held_by(model, "tp=8", qkv, 0) == "[0, 1024) [5120, 5376) [6400, 6656)");
  CHECK(held_by(model, "tp=2", "model.layers.0.mlp.gate_up_proj.weight", 1) ==
        "[8960, 17920) [26880, 35840)");
  CHECK(refusal(model, "tp=16") == "E0214");
}

TEST_CASE("Falcon-40B: eight groups of sixteen query heads, a key and a value") {
  const Model model{config_of(R"({"architectures": ["FalconForCausalLM"], "hidden_size": 8192,
    "new_decoder_architecture": true, "num_attention_heads": 128, "num_kv_heads": 8,
    "num_hidden_layers": 1})"),
                    {spec("transformer.h.0.self_attention.query_key_value.weight", {9216, 8192})}};
  CHECK(held_by(model, "tp=4", model.tensors[0].name, 1) == "[2304, 4608)");
  CHECK(refusal(model, "tp=16") == "E0214");
}

TEST_CASE("Llama 3.1 405B: on 16 devices every KV head is on two of them") {
  const Model model{config_of(R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 16384,
    "num_attention_heads": 128, "num_key_value_heads": 8, "num_hidden_layers": 1})"),
                    {spec("model.layers.0.self_attn.q_proj.weight", {16384, 16384}),
                     spec("model.layers.0.self_attn.k_proj.weight", {1024, 16384})}};
  CHECK(held_by(model, "tp=16", "model.layers.0.self_attn.k_proj.weight", 4) == "[256, 384)");
  CHECK(held_by(model, "tp=16", "model.layers.0.self_attn.k_proj.weight", 5) == "[256, 384)");
  CHECK(held_by(model, "tp=16", "model.layers.0.self_attn.q_proj.weight", 5) == "[5120, 6144)");
}

TEST_CASE("Qwen3-Next 80B: linear attention goes as far as its 16 key heads") {
  const Model model{config_of(R"({"architectures": ["Qwen3NextForCausalLM"], "hidden_size": 2048,
    "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "num_hidden_layers": 1,
    "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128})"),
                    {spec("model.layers.0.linear_attn.in_proj_qkvz.weight", {12288, 2048}),
                     spec("model.layers.0.linear_attn.in_proj_ba.weight", {64, 2048}),
                     spec("model.layers.0.linear_attn.conv1d.weight", {8192, 1, 4})}};
  CHECK(held_by(model, "tp=16", model.tensors[0].name, 1) == "[768, 1536)");
  CHECK(held_by(model, "tp=16", model.tensors[1].name, 1) == "[4, 8)");
  CHECK(held_by(model, "tp=16", model.tensors[2].name, 1) ==
        "[128, 256) [2176, 2304) [4352, 4608)");
  CHECK(refusal(model, "tp=32") == "E0214");
}

}  // namespace
}  // namespace shardtool::mapping
