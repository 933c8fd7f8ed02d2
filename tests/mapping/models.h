#pragma once

#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"

/// Tensors of small models of each family, with the names and shapes of the real checkpoints.
namespace shardtool::mapping {

struct TinyModel {
  std::string config;  ///< config.json
  std::vector<TensorSpec> tensors;
};

struct LlamaSizes {
  i64 layers = 2;
  i64 hidden = 64;
  i64 heads = 8;
  i64 kv_heads = 2;
  i64 head_dim = 8;
  i64 mlp = 96;
  i64 vocab = 100;
};

TinyModel tiny_llama(const LlamaSizes& sizes = {});
/// Llama with biases on q, k and v.
TinyModel tiny_qwen2(const LlamaSizes& sizes = {});
/// Llama with a norm over each head of q and k.
TinyModel tiny_qwen3(const LlamaSizes& sizes = {});
TinyModel tiny_phi3(const LlamaSizes& sizes = {});
TinyModel tiny_mixtral(const LlamaSizes& sizes = {}, i64 experts = 4);
/// Without the prefix "transformer." and with the mask buffers, as published; `prefixed`: the other
/// way.
TinyModel tiny_gpt2(bool prefixed = false);
TinyModel tiny_gpt_neox();

}  // namespace shardtool::mapping
