#include "tests/api/published_models.h"

#include <fmt/format.h>

namespace shardtool::test {
namespace {

class TensorList {
 public:
  void add(const std::string& name, Shape shape, Dtype dtype = Dtype::kBF16) {
    list.push_back({name, dtype, std::move(shape)});
  }
  /// Adds an FP8 weight and the scales of its blocks.
  void add_fp8(const std::string& name, i64 rows, i64 columns) {
    constexpr i64 kBlock = 128;
    add(name + ".weight", {rows, columns}, Dtype::kF8E4M3);
    add(name + ".weight_scale_inv", {ceil_div(rows, kBlock), ceil_div(columns, kBlock)},
        Dtype::kF32);
  }
  void add_mlp_fp8(const std::string& name, i64 hidden, i64 width) {
    add_fp8(name + ".gate_proj", width, hidden);
    add_fp8(name + ".up_proj", width, hidden);
    add_fp8(name + ".down_proj", hidden, width);
  }

  std::vector<TensorSpec> list;
};

void add_layer(const LlamaLike& m, const std::string& layer, TensorList& tensors) {
  const i64 q = m.heads * m.head_dim;
  const i64 kv = m.kv_heads * m.head_dim;
  tensors.add(layer + "self_attn.q_proj.weight", {q, m.hidden});
  tensors.add(layer + "self_attn.k_proj.weight", {kv, m.hidden});
  tensors.add(layer + "self_attn.v_proj.weight", {kv, m.hidden});
  tensors.add(layer + "self_attn.o_proj.weight", {m.hidden, q});
  if (m.qkv_bias) {
    tensors.add(layer + "self_attn.q_proj.bias", {q});
    tensors.add(layer + "self_attn.k_proj.bias", {kv});
    tensors.add(layer + "self_attn.v_proj.bias", {kv});
  }
  if (m.qk_norm) {
    tensors.add(layer + "self_attn.q_norm.weight", {m.head_dim});
    tensors.add(layer + "self_attn.k_norm.weight", {m.head_dim});
  }
  tensors.add(layer + "mlp.gate_proj.weight", {m.mlp, m.hidden});
  tensors.add(layer + "mlp.up_proj.weight", {m.mlp, m.hidden});
  tensors.add(layer + "mlp.down_proj.weight", {m.hidden, m.mlp});
  tensors.add(layer + "input_layernorm.weight", {m.hidden});
  tensors.add(layer + "post_attention_layernorm.weight", {m.hidden});
}

/// Sizes of DeepSeek-V3's config.json.
constexpr i64 kHidden = 7168;
constexpr i64 kVocab = 129280;

void add_deepseek_layer(i64 number, TensorList& tensors) {
  const auto layer = fmt::format("model.layers.{}.", number);
  tensors.add_fp8(layer + "self_attn.q_a_proj", 1536, kHidden);
  tensors.add(layer + "self_attn.q_a_layernorm.weight", {1536});
  tensors.add_fp8(layer + "self_attn.q_b_proj", 128 * 192, 1536);
  tensors.add_fp8(layer + "self_attn.kv_a_proj_with_mqa", 512 + 64, kHidden);
  tensors.add(layer + "self_attn.kv_a_layernorm.weight", {512});
  tensors.add_fp8(layer + "self_attn.kv_b_proj", 128 * 256, 512);
  tensors.add_fp8(layer + "self_attn.o_proj", kHidden, 128 * 128);
  tensors.add(layer + "input_layernorm.weight", {kHidden});
  tensors.add(layer + "post_attention_layernorm.weight", {kHidden});
  if (number < 3) return tensors.add_mlp_fp8(layer + "mlp", kHidden, 18432);
  tensors.add(layer + "mlp.gate.weight", {256, kHidden});
  tensors.add(layer + "mlp.gate.e_score_correction_bias", {256}, Dtype::kF32);
  for (int expert = 0; expert < 256; ++expert) {
    tensors.add_mlp_fp8(fmt::format("{}mlp.experts.{}", layer, expert), kHidden, 2048);
  }
  tensors.add_mlp_fp8(layer + "mlp.shared_experts", kHidden, 2048);
}

constexpr const char* kDeepseekConfig = R"({
  "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
  "num_hidden_layers": 61, "hidden_size": 7168, "intermediate_size": 18432,
  "moe_intermediate_size": 2048, "num_attention_heads": 128, "num_key_value_heads": 128,
  "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
  "v_head_dim": 128, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
  "first_k_dense_replace": 3, "num_nextn_predict_layers": 1, "vocab_size": 129280,
  "torch_dtype": "bfloat16",
  "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                          "weight_block_size": [128, 128]}})";

}  // namespace

PublishedModel llama_like(const LlamaLike& m) {
  TensorList tensors;
  tensors.add("model.embed_tokens.weight", {m.vocab, m.hidden});
  for (i64 layer = 0; layer < m.layers; ++layer)
    add_layer(m, fmt::format("model.layers.{}.", layer), tensors);
  tensors.add("model.norm.weight", {m.hidden});
  if (!m.tied) tensors.add("lm_head.weight", {m.vocab, m.hidden});
  const auto config = fmt::format(
      R"({{"architectures": ["{}"], "model_type": "{}", "num_hidden_layers": {},
        "hidden_size": {}, "num_attention_heads": {}, "num_key_value_heads": {}, "head_dim": {},
        "intermediate_size": {}, "vocab_size": {}, "torch_dtype": "bfloat16"{}}})",
      m.architecture, m.model_type, m.layers, m.hidden, m.heads, m.kv_heads, m.head_dim, m.mlp,
      m.vocab, m.more_config);
  return {config, std::move(tensors.list)};
}

PublishedModel llama_3_8b() {
  return llama_like({.layers = 32,
                     .hidden = 4096,
                     .heads = 32,
                     .kv_heads = 8,
                     .head_dim = 128,
                     .mlp = 14336,
                     .vocab = 128256});
}

PublishedModel llama_3_70b() {
  return llama_like({.layers = 80,
                     .hidden = 8192,
                     .heads = 64,
                     .kv_heads = 8,
                     .head_dim = 128,
                     .mlp = 28672,
                     .vocab = 128256});
}

PublishedModel llama_3_405b() {
  return llama_like({.layers = 126,
                     .hidden = 16384,
                     .heads = 128,
                     .kv_heads = 8,
                     .head_dim = 128,
                     .mlp = 53248,
                     .vocab = 128256});
}

PublishedModel qwen_2_5_half_billion() {
  return llama_like({.model_type = "qwen2",
                     .architecture = "Qwen2ForCausalLM",
                     .layers = 24,
                     .hidden = 896,
                     .heads = 14,
                     .kv_heads = 2,
                     .head_dim = 64,
                     .mlp = 4864,
                     .vocab = 151936,
                     .tied = true,
                     .qkv_bias = true,
                     .more_config = R"(, "use_sliding_window": false, "sliding_window": 32768,
                                       "max_window_layers": 21)"});
}

PublishedModel qwen_3_32b() {
  return llama_like({.model_type = "qwen3",
                     .architecture = "Qwen3ForCausalLM",
                     .layers = 64,
                     .hidden = 5120,
                     .heads = 64,
                     .kv_heads = 8,
                     .head_dim = 128,
                     .mlp = 25600,
                     .vocab = 151936,
                     .qk_norm = true});
}

PublishedModel deepseek_v3() {
  TensorList tensors;
  tensors.add("model.embed_tokens.weight", {kVocab, kHidden});
  for (i64 layer = 0; layer <= 61; ++layer) add_deepseek_layer(layer, tensors);
  const std::string next = "model.layers.61.";
  tensors.add(next + "embed_tokens.weight", {kVocab, kHidden});
  tensors.add(next + "shared_head.head.weight", {kVocab, kHidden});
  tensors.add(next + "shared_head.norm.weight", {kHidden});
  tensors.add(next + "enorm.weight", {kHidden});
  tensors.add(next + "hnorm.weight", {kHidden});
  tensors.add(next + "eh_proj.weight", {kHidden, 2 * kHidden});
  tensors.add("model.norm.weight", {kHidden});
  tensors.add("lm_head.weight", {kVocab, kHidden});
  return {kDeepseekConfig, std::move(tensors.list)};
}

}  // namespace shardtool::test
