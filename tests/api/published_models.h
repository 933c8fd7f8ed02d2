#pragma once

#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"

/// Tensors of published models at full size: names, dtypes and shapes, no data.
namespace shardtool::test {

struct PublishedModel {
  std::string config;  ///< config.json
  std::vector<TensorSpec> tensors;
};

/// Sizes of a model of the Llama family, from its config.json.
struct LlamaLike {
  std::string model_type = "llama";
  std::string architecture = "LlamaForCausalLM";
  i64 layers = 0;
  i64 hidden = 0;
  i64 heads = 0;
  i64 kv_heads = 0;
  i64 head_dim = 0;
  i64 mlp = 0;
  i64 vocab = 0;
  bool tied = false;
  bool qkv_bias = false;
  bool qk_norm = false;
  std::string more_config = {};  ///< further members, each after a comma
};

PublishedModel llama_like(const LlamaLike& sizes);
PublishedModel llama_3_8b();
PublishedModel llama_3_70b();
PublishedModel llama_3_405b();
PublishedModel qwen_2_5_half_billion();
PublishedModel qwen_3_32b();
/// FP8 in blocks of 128 x 128, with the multi-token prediction layer.
PublishedModel deepseek_v3();

}  // namespace shardtool::test
