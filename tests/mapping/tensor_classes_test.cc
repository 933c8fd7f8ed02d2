#include "lib/mapping/tensor_classes.h"

#include <doctest/doctest.h>

#include "tests/support/throws.h"

namespace shardtool::mapping {
namespace {

using Own = std::vector<OwnClass>;

std::string class_of(TensorClasses& classes, const std::string& tensor) {
  return classes.names()[static_cast<size_t>(classes.of(tensor))];
}

TEST_CASE("tensors of the common families have the class that their names mean") {
  TensorClasses classes;
  const std::pair<const char*, const char*> table[] = {
      {"model.embed_tokens.weight", "embedding"},
      {"transformer.wpe.weight", "embedding"},
      {"gpt_neox.embed_in.weight", "embedding"},
      {"bert.embeddings.word_embeddings.weight", "embedding"},
      {"bert.embeddings.LayerNorm.weight", "norms"},
      {"model.layers.7.self_attn.q_proj.weight", "attention"},
      {"model.layers.7.self_attn.q_proj.bias", "attention"},
      {"model.layers.7.self_attn.kv_a_proj_with_mqa.weight", "attention"},
      {"model.layers.7.self_attn.q_norm.weight", "norms"},
      {"h.0.attn.c_attn.weight", "attention"},
      {"transformer.blocks.0.norm_attn_norm.norm_1.weight", "norms"},
      {"transformer.blocks.0.norm_attn_norm.attn.Wqkv.weight", "attention"},
      {"decoder.block.0.layer.1.EncDecAttention.k.weight", "attention"},
      {"model.layers.0.mlp.gate_proj.weight", "mlp"},
      {"bert.encoder.layer.0.output.dense.weight", "mlp"},
      {"bert.encoder.layer.0.attention.output.dense.weight", "attention"},
      {"model.layers.3.mlp.shared_experts.up_proj.weight", "mlp"},
      {"model.layers.3.mlp.experts.17.up_proj.weight", "experts"},
      {"model.layers.3.mlp.experts.17.up_proj.weight_scale_inv", "scales"},
      {"model.layers.0.block_sparse_moe.experts.1.w1.weight", "experts"},
      {"model.layers.0.mlp.experts.gate_up_proj_scales", "scales"},
      {"model.layers.0.altup.correct_output_scale", "other"},
      {"transformer.output_layer.weight", "head"},
      {"model.layers.0.mlp.experts.gate_up_proj_blocks", "experts"},
      {"model.layers.0.self_attn.q_proj.qzeros", "scales"},
      {"model.layers.0.self_attn.q_proj.qweight", "attention"},
      {"model.layers.0.input_layernorm.weight", "norms"},
      {"transformer.ln_f.weight", "norms"},
      {"model.norm.weight", "norms"},
      {"lm_head.weight", "head"},
      {"lm_head.layer_norm.weight", "norms"},
      {"model.layers.61.shared_head.head.weight", "head"},
      {"embed_out.weight", "head"},
      {"backbone.layers.0.mixer.A_log", "other"},
  };
  for (const auto& [name, expected] : table) {
    CAPTURE(name);
    CHECK(class_of(classes, name) == expected);
  }
}

TEST_CASE("a class of one's own is asked first, and may tell numbers apart") {
  TensorClasses classes(Own{{"first", "model.layers.0.**"}, {"gates", "**.gate_proj.weight"}});
  CHECK(class_of(classes, "model.layers.0.mlp.gate_proj.weight") == "first");
  CHECK(class_of(classes, "model.layers.1.mlp.gate_proj.weight") == "gates");
  CHECK(class_of(classes, "model.layers.1.mlp.up_proj.weight") == "mlp");
  CHECK(classes.names().front() == "first");
  CHECK(classes.names().back() == "other");
}

TEST_CASE("a class of one's own may add to a built-in one") {
  TensorClasses classes(Own{{"mlp", "**.adapter.weight"}});
  CHECK(class_of(classes, "model.layers.0.adapter.weight") == "mlp");
  CHECK(class_of(classes, "model.layers.0.mlp.up_proj.weight") == "mlp");
  CHECK(classes.names().size() == TensorClasses().names().size());
}

TEST_CASE("a class without a name, one called other, and a broken glob are refused") {
  CHECK_ERROR(kUsage, TensorClasses(Own{{"", "**"}}));
  CHECK_ERROR(kUsage, TensorClasses(Own{{"other", "**"}}));
  CHECK_ERROR(kMappingSchema, TensorClasses(Own{{"x", "{a"}}));
}

}  // namespace
}  // namespace shardtool::mapping
