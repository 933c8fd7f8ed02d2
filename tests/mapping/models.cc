#include "tests/mapping/models.h"

#include <fmt/format.h>

namespace shardtool::mapping {
namespace {

class Builder {
 public:
  void add(const std::string& name, Shape shape, Dtype dtype = Dtype::kBF16) {
    tensors_.push_back({name, dtype, std::move(shape)});
  }
  void linear(const std::string& name, i64 out, i64 in, bool bias = false) {
    add(name + ".weight", {out, in});
    if (bias) add(name + ".bias", {out});
  }
  std::vector<TensorSpec> take() { return std::move(tensors_); }

 private:
  std::vector<TensorSpec> tensors_;
};

std::string llama_config(const std::string& architecture, const std::string& type,
                         const LlamaSizes& s, const std::string& more = "") {
  return fmt::format(
      R"({{"architectures": ["{}"], "model_type": "{}", "hidden_size": {}, "num_attention_heads": {},
    "num_key_value_heads": {}, "head_dim": {}, "intermediate_size": {}, "num_hidden_layers": {}, "vocab_size": {}{}}})",
      architecture, type, s.hidden, s.heads, s.kv_heads, s.head_dim, s.mlp, s.layers, s.vocab,
      more);
}

void add_frame(Builder& b, const LlamaSizes& s) {
  b.add("model.embed_tokens.weight", {s.vocab, s.hidden});
  b.add("model.norm.weight", {s.hidden});
  b.add("lm_head.weight", {s.vocab, s.hidden});
  for (i64 layer = 0; layer < s.layers; ++layer) {
    b.add(fmt::format("model.layers.{}.input_layernorm.weight", layer), {s.hidden});
    b.add(fmt::format("model.layers.{}.post_attention_layernorm.weight", layer), {s.hidden});
  }
}

void add_attention(Builder& b, const LlamaSizes& s, bool qkv_bias) {
  for (i64 layer = 0; layer < s.layers; ++layer) {
    const auto attention = fmt::format("model.layers.{}.self_attn.", layer);
    b.linear(attention + "q_proj", s.heads * s.head_dim, s.hidden, qkv_bias);
    b.linear(attention + "k_proj", s.kv_heads * s.head_dim, s.hidden, qkv_bias);
    b.linear(attention + "v_proj", s.kv_heads * s.head_dim, s.hidden, qkv_bias);
    b.linear(attention + "o_proj", s.hidden, s.heads * s.head_dim);
  }
}

void add_mlp(Builder& b, const LlamaSizes& s) {
  for (i64 layer = 0; layer < s.layers; ++layer) {
    const auto mlp = fmt::format("model.layers.{}.mlp.", layer);
    b.linear(mlp + "gate_proj", s.mlp, s.hidden);
    b.linear(mlp + "up_proj", s.mlp, s.hidden);
    b.linear(mlp + "down_proj", s.hidden, s.mlp);
  }
}

Builder llama(const LlamaSizes& s, bool qkv_bias) {
  Builder b;
  add_frame(b, s);
  add_attention(b, s, qkv_bias);
  add_mlp(b, s);
  return b;
}

}  // namespace

TinyModel tiny_llama(const LlamaSizes& s) {
  Builder b = llama(s, false);
  b.add("model.layers.0.self_attn.rotary_emb.inv_freq", {s.head_dim / 2}, Dtype::kF32);
  return {llama_config("LlamaForCausalLM", "llama", s), b.take()};
}

TinyModel tiny_qwen2(const LlamaSizes& s) {
  return {llama_config("Qwen2ForCausalLM", "qwen2", s), llama(s, true).take()};
}

TinyModel tiny_qwen3(const LlamaSizes& s) {
  Builder b = llama(s, false);
  for (i64 layer = 0; layer < s.layers; ++layer) {
    b.add(fmt::format("model.layers.{}.self_attn.q_norm.weight", layer), {s.head_dim});
    b.add(fmt::format("model.layers.{}.self_attn.k_norm.weight", layer), {s.head_dim});
  }
  return {llama_config("Qwen3ForCausalLM", "qwen3", s), b.take()};
}

TinyModel tiny_phi3(const LlamaSizes& s) {
  Builder b;
  add_frame(b, s);
  for (i64 layer = 0; layer < s.layers; ++layer) {
    const auto prefix = fmt::format("model.layers.{}.", layer);
    b.linear(prefix + "self_attn.qkv_proj", (s.heads + 2 * s.kv_heads) * s.head_dim, s.hidden);
    b.linear(prefix + "self_attn.o_proj", s.hidden, s.heads * s.head_dim);
    b.linear(prefix + "mlp.gate_up_proj", 2 * s.mlp, s.hidden);
    b.linear(prefix + "mlp.down_proj", s.hidden, s.mlp);
  }
  return {llama_config("Phi3ForCausalLM", "phi3", s), b.take()};
}

TinyModel tiny_mixtral(const LlamaSizes& s, i64 experts) {
  Builder b;
  add_frame(b, s);
  add_attention(b, s, false);
  for (i64 layer = 0; layer < s.layers; ++layer) {
    const auto moe = fmt::format("model.layers.{}.block_sparse_moe.", layer);
    b.linear(moe + "gate", experts, s.hidden);
    for (i64 e = 0; e < experts; ++e) {
      b.linear(fmt::format("{}experts.{}.w1", moe, e), s.mlp, s.hidden);
      b.linear(fmt::format("{}experts.{}.w2", moe, e), s.hidden, s.mlp);
      b.linear(fmt::format("{}experts.{}.w3", moe, e), s.mlp, s.hidden);
    }
  }
  return {llama_config("MixtralForCausalLM", "mixtral", s,
                       fmt::format(", \"num_local_experts\": {}", experts)),
          b.take()};
}

TinyModel tiny_gpt2(bool prefixed) {
  const std::string prefix = prefixed ? "transformer." : "";
  Builder b;
  b.add(prefix + "wte.weight", {257, 24});
  b.add(prefix + "wpe.weight", {16, 24});
  b.add(prefix + "ln_f.weight", {24});
  b.add(prefix + "ln_f.bias", {24});
  for (i64 layer = 0; layer < 2; ++layer) {
    const auto block = fmt::format("{}h.{}.", prefix, layer);
    for (const std::string norm : {"ln_1", "ln_2"}) {
      b.add(block + norm + ".weight", {24});
      b.add(block + norm + ".bias", {24});
    }
    const auto conv = [&](const std::string& name, i64 in, i64 out) {
      b.add(block + name + ".weight", {in, out});
      b.add(block + name + ".bias", {out});
    };
    conv("attn.c_attn", 24, 72);
    conv("attn.c_proj", 24, 24);
    conv("mlp.c_fc", 24, 96);
    conv("mlp.c_proj", 96, 24);
    b.add(block + "attn.bias", {1, 1, 16, 16}, Dtype::kF32);
    if (prefixed) b.add(block + "attn.masked_bias", {}, Dtype::kF32);
  }
  if (prefixed) b.add("lm_head.weight", {257, 24});
  return {
      R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 24, "n_head": 6, "n_layer": 2})",
      b.take()};
}

TinyModel tiny_gpt_neox() {
  Builder b;
  b.add("gpt_neox.embed_in.weight", {100, 32});
  b.add("embed_out.weight", {100, 32});
  b.add("gpt_neox.final_layer_norm.weight", {32});
  b.add("gpt_neox.final_layer_norm.bias", {32});
  for (i64 layer = 0; layer < 2; ++layer) {
    const auto block = fmt::format("gpt_neox.layers.{}.", layer);
    b.linear(block + "attention.query_key_value", 96, 32, true);
    b.linear(block + "attention.dense", 32, 32, true);
    b.linear(block + "mlp.dense_h_to_4h", 128, 32, true);
    b.linear(block + "mlp.dense_4h_to_h", 32, 128, true);
    for (const std::string norm : {"input_layernorm", "post_attention_layernorm"}) {
      b.add(block + norm + ".weight", {32});
      b.add(block + norm + ".bias", {32});
    }
    b.add(block + "attention.bias", {1, 1, 16, 16}, Dtype::kU8);
    b.add(block + "attention.masked_bias", {}, Dtype::kF32);
    b.add(block + "attention.rotary_emb.inv_freq", {2}, Dtype::kF32);
  }
  return {
      R"({"architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", "hidden_size": 32, "num_attention_heads": 8, "num_hidden_layers": 2})",
      b.take()};
}

}  // namespace shardtool::mapping
