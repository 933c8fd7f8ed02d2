#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/mapping/resolve/resolve.h"
#include "tests/mapping/fixtures.h"
#include "tests/mapping/models.h"

namespace shardtool::mapping {
namespace {

struct Sample {
  std::vector<TensorSpec> tensors;
  Resolution resolution;

  Held held_of(std::string_view name, size_t axis = 0) const {
    return held(*at(resolution, tensors, name).layout, axis);
  }
};

Sample solve(const std::string& name, std::vector<TensorSpec> tensors,
             const std::string& config_text, const ResolveOptions& options = {}) {
  const Mapping mapping = load_mapping(SHARDTOOL_SOURCE_DIR "/samples/mappings/" + name + ".json");
  const ModelConfig config = config_of(config_text);
  Resolution resolution = resolve(mapping, tensors, &config, options);
  return {std::move(tensors), std::move(resolution)};
}

Sample solve(const std::string& name, const TinyModel& model, const ResolveOptions& options = {}) {
  return solve(name, model.tensors, model.config, options);
}

TEST_CASE(
    "llama-gqa-tp4: two KV heads on four devices are replicated in pairs, buffers are dropped") {
  const Sample sample = solve("llama-gqa-tp4", tiny_llama({.heads = 8, .kv_heads = 2}));
  CHECK(sample.held_of("model.layers.0.self_attn.k_proj.weight") ==
        Held{"[0, 8)", "[0, 8)", "[8, 16)", "[8, 16)"});
  CHECK(sample.held_of("model.layers.0.self_attn.q_proj.weight")[2] == "[32, 48)");
  CHECK(sample.resolution.tied.size() == 1);
  CHECK(sample.resolution.dropped.size() == 1);
  CHECK(sample.resolution.warnings.empty());
}

TEST_CASE("llama-gqa-tp4: a tied head that is not stored is no unused rule") {
  TinyModel model = tiny_llama();
  std::erase_if(model.tensors,
                [](const TensorSpec& tensor) { return tensor.name == "lm_head.weight"; });
  CHECK(solve("llama-gqa-tp4", model).resolution.tied.empty());
}

TEST_CASE("gpt2-stacked-qkv-tp4: each of Q, K and V is cut by heads") {
  // Six heads of 4 over four devices: 2, 2, 1 and 1 of them, in each third of 24.
  const Sample sample = solve("gpt2-stacked-qkv-tp4", tiny_gpt2());
  CHECK(sample.held_of("h.1.attn.c_attn.weight", 1) ==
        Held{"[0, 8) [24, 32) [48, 56)", "[8, 16) [32, 40) [56, 64)", "[16, 20) [40, 44) [64, 68)",
             "[20, 24) [44, 48) [68, 72)"});
  CHECK(sample.held_of("h.1.attn.c_attn.bias") == sample.held_of("h.1.attn.c_attn.weight", 1));
  CHECK(sample.held_of("h.1.attn.c_proj.weight") ==
        Held{"[0, 8)", "[8, 16)", "[16, 20)", "[20, 24)"});
  CHECK(sample.held_of("wte.weight") == Held{"[0, 65)", "[65, 129)", "[129, 193)", "[193, 257)"});
  CHECK(at(sample.resolution, sample.tensors, "h.0.mlp.c_proj.bias").by->bias == "after_reduction");
  CHECK(sample.resolution.dropped.size() == 2);
}

TEST_CASE(
    "mixtral-ep2-tp4: an expert lives on one ep index, the dense part is over all eight devices") {
  const Sample sample = solve(
      "mixtral-ep2-tp4",
      tiny_mixtral({.hidden = 128, .heads = 16, .kv_heads = 8, .head_dim = 8, .vocab = 120}, 4));
  CHECK(at(sample.resolution, sample.tensors, "model.layers.0.block_sparse_moe.experts.3.w1.weight")
            .layout->ranks() == std::vector<i64>{4, 5, 6, 7});
  CHECK(at(sample.resolution, sample.tensors, "model.layers.0.block_sparse_moe.experts.3.w1.weight")
            .by->rule == "w13");
  CHECK(at(sample.resolution, sample.tensors, "model.layers.0.block_sparse_moe.experts.3.w2.weight")
            .by->rule == "preset:mixtral#expert_down");
  CHECK(sample.held_of("model.layers.0.block_sparse_moe.experts.3.w2.weight", 1) ==
        Held{"not here", "not here", "not here", "not here", "[0, 24)", "[24, 48)", "[48, 72)",
             "[72, 96)"});
  CHECK(sample.held_of("model.layers.0.self_attn.q_proj.weight")[5] == "[80, 96)");
  CHECK(sample.held_of("model.layers.0.self_attn.v_proj.weight")[5] == "[40, 48)");
  CHECK(sample.held_of("lm_head.weight")[7] == "[112, 120) pad 8");
}

TEST_CASE(
    "llama-fsdp4-tp2: parameters are cut over fsdp and tp, the compute layout over tp alone") {
  const LlamaSizes sizes{.kv_heads = 8};
  ResolveOptions compute;
  compute.layout = "compute";
  const Sample stored = solve("llama-fsdp4-tp2", tiny_llama(sizes));
  const Sample computed = solve("llama-fsdp4-tp2", tiny_llama(sizes), compute);
  const std::string gate = "model.layers.0.mlp.gate_proj.weight";
  CHECK(stored.held_of(gate, 0) == computed.held_of(gate, 0));
  CHECK(stored.held_of(gate, 1) == Held{"[0, 16)", "[0, 16)", "[16, 32)", "[16, 32)", "[32, 48)",
                                        "[32, 48)", "[48, 64)", "[48, 64)"});
  CHECK(computed.held_of(gate, 1)[5] == "[0, 64)");
  CHECK(stored.held_of("model.norm.weight")[2] == "[16, 32)");
}

TEST_CASE("gpt-neox-interleaved-tp8: shards are view(heads, 3, head_dim) by heads") {
  const Sample sample = solve("gpt-neox-interleaved-tp8", tiny_gpt_neox());
  // Eight heads of 4: head h is rows [12h, 12h + 12), that is q, k and v of head h.
  for (i64 rank = 0; rank < 8; ++rank) {
    CHECK(sample.held_of(
              "gpt_neox.layers.0.attention.query_key_value.weight")[static_cast<size_t>(rank)] ==
          fmt::format("[{}, {})", 12 * rank, 12 * rank + 12));
  }
  CHECK(sample.held_of("embed_out.weight")[7] == "[91, 100)");
}

constexpr auto kDeepseekConfig =
    R"({"architectures": ["DeepseekV3ForCausalLM"], "num_attention_heads": 128, "n_routed_experts": 256,
  "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "quantization_config": {"weight_block_size": [128, 128]}})";

/// Layer 0 (dense), layer 3 (experts) and the tensors outside of layers, in true shapes.
std::vector<TensorSpec> deepseek_v3() {
  std::vector<TensorSpec> tensors = {
      spec("model.embed_tokens.weight", {129280, 7168}), spec("lm_head.weight", {129280, 7168}),
      spec("model.norm.weight", {7168}), spec("model.layers.61.eh_proj.weight", {7168, 14336})};
  const auto fp8 = [&](const std::string& name, i64 rows, i64 columns) {
    tensors.push_back(spec(name + ".weight", {rows, columns}, Dtype::kF8E4M3));
    tensors.push_back(spec(name + ".weight_scale_inv",
                           {ceil_div(rows, 128), ceil_div(columns, 128)}, Dtype::kF32));
  };
  const auto mlp = [&](const std::string& name, i64 width) {
    fp8(name + "gate_proj", width, 7168);
    fp8(name + "up_proj", width, 7168);
    fp8(name + "down_proj", 7168, width);
  };
  for (const int layer : {0, 3}) {
    const auto prefix = fmt::format("model.layers.{}.", layer);
    fp8(prefix + "self_attn.q_a_proj", 1536, 7168);
    fp8(prefix + "self_attn.q_b_proj", 128 * 192, 1536);
    fp8(prefix + "self_attn.kv_a_proj_with_mqa", 576, 7168);
    fp8(prefix + "self_attn.kv_b_proj", 128 * 256, 512);
    fp8(prefix + "self_attn.o_proj", 7168, 128 * 128);
    tensors.push_back(spec(prefix + "self_attn.q_a_layernorm.weight", {1536}));
    tensors.push_back(spec(prefix + "self_attn.kv_a_layernorm.weight", {512}));
    tensors.push_back(spec(prefix + "input_layernorm.weight", {7168}));
    tensors.push_back(spec(prefix + "post_attention_layernorm.weight", {7168}));
  }
  mlp("model.layers.0.mlp.", 18432);
  mlp("model.layers.3.mlp.shared_experts.", 2048);
  for (int e = 0; e < 256; ++e) mlp(fmt::format("model.layers.3.mlp.experts.{}.", e), 2048);
  tensors.push_back(spec("model.layers.3.mlp.gate.weight", {256, 7168}));
  tensors.push_back(spec("model.layers.3.mlp.gate.e_score_correction_bias", {256}, Dtype::kF32));
  return tensors;
}

TEST_CASE(
    "deepseek-v3-fp8-ep4-tp8: scales follow their weights for tp 8 and 16, in the true shapes") {
  const Sample eight = solve("deepseek-v3-fp8-ep4-tp8", deepseek_v3(), kDeepseekConfig);
  CHECK(eight.held_of("model.layers.3.self_attn.q_b_proj.weight_scale_inv")[1] == "[24, 48)");
  CHECK(eight.held_of("model.layers.3.self_attn.kv_a_proj_with_mqa.weight_scale_inv")[7] ==
        "[0, 5)");
  CHECK(
      at(eight.resolution, eight.tensors, "model.layers.3.mlp.experts.64.up_proj.weight_scale_inv")
          .layout->ranks() == std::vector<i64>{8, 9, 10, 11, 12, 13, 14, 15});
  CHECK(eight.held_of("model.layers.3.mlp.experts.64.down_proj.weight_scale_inv", 1)[9] ==
        "[2, 4)");
  CHECK(eight.resolution.dropped.size() == 1);
  const Sample sixteen =
      solve("deepseek-v3-fp8-ep4-tp8", deepseek_v3(), kDeepseekConfig, over("ep=4,tp=16"));
  CHECK(sixteen.held_of("model.layers.0.mlp.gate_proj.weight_scale_inv")[1] == "[9, 18)");
}

TEST_CASE("deepseek-v3-fp8-ep4-tp8: tp 32, 64 and 128 would cut inside blocks") {
  for (const std::string mesh : {"ep=2,tp=32", "ep=1,tp=64", "ep=1,tp=128"}) {
    CAPTURE(mesh);
    CHECK_ERROR(kBlockStraddle,
                solve("deepseek-v3-fp8-ep4-tp8", deepseek_v3(), kDeepseekConfig, over(mesh)));
  }
}

}  // namespace
}  // namespace shardtool::mapping
