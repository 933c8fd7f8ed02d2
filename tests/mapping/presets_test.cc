#include "lib/mapping/presets.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "tests/mapping/fixtures.h"
#include "tests/mapping/models.h"

namespace shardtool::mapping {
namespace {

struct Case {
  std::string preset;
  TinyModel model;
};

std::vector<Case> cases() {
  return {{"llama", tiny_llama()},   {"qwen2", tiny_qwen2()},      {"qwen3", tiny_qwen3()},
          {"phi3", tiny_phi3()},     {"mixtral", tiny_mixtral()},  {"gpt2", tiny_gpt2()},
          {"gpt2", tiny_gpt2(true)}, {"gpt_neox", tiny_gpt_neox()}};
}

struct Solved {
  std::vector<TensorSpec> tensors;
  Resolution resolution;

  Held rows(std::string_view name, size_t axis = 0) const {
    return held(*at(resolution, tensors, name).layout, axis);
  }
  std::vector<i64> ranks(std::string_view name) const {
    return at(resolution, tensors, name).layout->ranks();
  }
};

Solved solve(std::string_view preset, const TinyModel& model, std::string_view mesh) {
  const ModelConfig config = config_of(model.config);
  return {model.tensors, resolve(load_preset(preset), model.tensors, &config, over(mesh))};
}

TEST_CASE("every preset is found by architecture, by model type, and by the names of its tensors") {
  for (const Case& c : cases()) {
    CAPTURE(c.preset);
    const ModelConfig config = config_of(c.model.config);
    CHECK(detect_preset(config, {}) == c.preset);
    CHECK(
        detect_preset(config_of(fmt::format(R"({{"architectures": ["Other"], "model_type": "{}"}})",
                                            config.model_type())),
                      {}) == c.preset);
    const bool own_names = c.preset != "qwen2" && c.preset != "qwen3";
    CHECK(detect_preset(config_of("{}"), c.model.tensors) == (own_names ? c.preset : "llama"));
  }
}

TEST_CASE("a model that calls itself something unknown is not guessed from its names") {
  CHECK(detect_preset(
            config_of(R"({"architectures": ["UnheardForCausalLM"], "model_type": "unheard"})"),
            tiny_llama().tensors) == std::nullopt);
  CHECK(detect_preset(config_of("{}"), {}) == std::nullopt);
}

TEST_CASE("the head of every preset and family is that of the whole document") {
  for (const auto list : {presets(), quantized_families()}) {
    for (const Preset& preset : list) {
      CAPTURE(preset.name);
      const Document whole =
          decode_document(std::string(preset_text(preset.name)), "preset:" + preset.name);
      CHECK(preset.description == whole.description);
      CHECK(preset.architectures == whole.when.architectures);
      CHECK(preset.model_types == whole.when.model_types);
      CHECK(preset.tensors_present == whole.when.tensors_present);
      CHECK(preset.config.size() == whole.when.config.size());
      CHECK(preset.quantization == whole.quantization);
    }
  }
}

TEST_CASE("every preset names the sections that lie side by side on an axis") {
  int named = 0;
  for (const Preset& preset : presets()) {
    CAPTURE(preset.name);
    const Document document =
        decode_document(std::string(preset_text(preset.name)), "preset:" + preset.name);
    for (const Rule& rule : document.rules) {
      const auto* dims = std::get_if<std::vector<Dim>>(&rule.cut);
      const bool has_sections = dims != nullptr && std::ranges::any_of(*dims, [](const Dim& dim) {
                                  return dim.sections.size() > 1;
                                });
      CAPTURE(rule.label);
      CHECK(rule.sections.empty() != has_sections);
      named += has_sections ? 1 : 0;
    }
  }
  CHECK(named > 50);
}

TEST_CASE("presets are sorted, described, and say for which models they are") {
  CHECK(std::is_sorted(presets().begin(), presets().end(),
                       [](const Preset& a, const Preset& b) { return a.name < b.name; }));
  for (const Preset& preset : presets()) {
    CAPTURE(preset.name);
    CHECK_FALSE(preset.description.empty());
    CHECK_FALSE(preset.architectures.empty());
    CHECK_FALSE(preset.model_types.empty());
    CHECK(preset.description.find('\n') == std::string::npos);
    CHECK(preset.description.size() <= 130);
  }
}

std::optional<std::string> falcon(std::string_view keys) {
  return detect_preset(
      config_of(fmt::format(
          R"({{"architectures": ["FalconForCausalLM"], "model_type": "falcon"{}}})", keys)),
      {});
}

TEST_CASE("where a family has several forms, the config chooses one, with the library's defaults") {
  CHECK(falcon("") == "falcon_multi_query");
  CHECK(falcon(R"(, "multi_query": null)") == "falcon_multi_query");
  CHECK(falcon(R"(, "multi_query": true, "new_decoder_architecture": false)") ==
        "falcon_multi_query");
  CHECK(falcon(R"(, "multi_query": false)") == "falcon_multi_head");
  CHECK(falcon(R"(, "multi_query": true, "new_decoder_architecture": true)") == "falcon");
  CHECK(falcon(R"(, "multi_query": false, "new_decoder_architecture": true)") == "falcon");
  CHECK(falcon(R"(, "multi_query": "false")") == std::nullopt);
  CHECK(detect_preset(config_of(R"({"model_type": "gpt_bigcode", "multi_query": false})"), {}) ==
        "gpt_bigcode_multi_head");
}

TEST_CASE("models that were published under another model type are known") {
  const auto by = [](std::string_view architecture, std::string_view type) {
    return detect_preset(config_of(fmt::format(R"({{"architectures": ["{}"], "model_type": "{}"}})",
                                               architecture, type)),
                         {});
  };
  CHECK(by("DeepseekV3ForCausalLM", "kimi_k2") == "deepseek_v3");
  CHECK(by("Phi3ForCausalLM", "phi3") == "phi3");  // Phi-4
  CHECK(by("XLMRobertaForTokenClassification", "xlm-roberta") == "roberta");
  CHECK(by("MPTForCausalLM", "mpt") == "mpt");
}

bool share_a_name(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& name) {
    return std::find(b.begin(), b.end(), name) != b.end();
  });
}

/// True if both have a condition on the same path with no value in common.
bool exclude_each_other(const Preset& a, const Preset& b) {
  return std::any_of(a.config.begin(), a.config.end(), [&](const ConfigCondition& of_a) {
    return std::any_of(b.config.begin(), b.config.end(), [&](const ConfigCondition& of_b) {
      return of_a.path == of_b.path && !share_a_name(of_a.values, of_b.values);
    });
  });
}

TEST_CASE("no config fits two presets of one architecture or model type") {
  for (const Preset& a : presets()) {
    for (const Preset& b : presets()) {
      const bool rivals = share_a_name(a.architectures, b.architectures) ||
                          share_a_name(a.model_types, b.model_types);
      if (a.name >= b.name || !rivals) continue;
      CAPTURE(a.name);
      CAPTURE(b.name);
      CHECK(exclude_each_other(a, b));
    }
  }
}

TEST_CASE(
    "every preset decides every tensor of its family, on every mesh, and warns of replicas alone") {
  for (const Case& c : cases()) {
    for (const std::string mesh : {"tp=1", "tp=2", "ep=2,tp=2", "pp=2,tp=2", "dp=3", "fsdp=2"}) {
      CAPTURE(c.preset);
      CAPTURE(mesh);
      const Solved solved = solve(c.preset, c.model, mesh);
      CHECK(solved.resolution.tensors.size() == c.model.tensors.size());
      CHECK(solved.resolution.dropped.empty());
      const bool is_cut = mesh.starts_with("tp") || mesh.starts_with("pp");
      const auto& warnings = solved.resolution.warnings;
      CHECK((warnings.empty() || !is_cut));
      CHECK(std::all_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
        return warning.starts_with("mesh axis '") && warning.find("cuts no tensor") != warning.npos;
      }));
    }
  }
}

TEST_CASE("q, k, v and o agree about their heads") {
  const Solved eight = solve("llama", tiny_llama({.heads = 8, .kv_heads = 2}), "tp=4");
  CHECK(eight.rows("model.layers.0.self_attn.q_proj.weight") ==
        Held{"[0, 16)", "[16, 32)", "[32, 48)", "[48, 64)"});
  CHECK(eight.rows("model.layers.0.self_attn.k_proj.weight") ==
        Held{"[0, 8)", "[0, 8)", "[8, 16)", "[8, 16)"});
  CHECK(eight.rows("model.layers.0.self_attn.o_proj.weight", 1) ==
        eight.rows("model.layers.0.self_attn.q_proj.weight"));
  const Solved groups =
      solve("llama", tiny_llama({.hidden = 56, .heads = 28, .kv_heads = 4, .head_dim = 2}), "tp=3");
  CHECK(groups.rows("model.layers.1.self_attn.q_proj.weight") ==
        Held{"[0, 28)", "[28, 42)", "[42, 56)"});
  CHECK(groups.rows("model.layers.1.self_attn.v_proj.weight") ==
        Held{"[0, 4)", "[4, 6)", "[6, 8)"});
}

TEST_CASE("the MLP is cut alike in all its layers, norms are whole, the vocabulary is dealt out") {
  const Solved solved = solve("llama", tiny_llama(), "tp=4");
  CHECK(solved.rows("model.layers.0.mlp.gate_proj.weight") ==
        solved.rows("model.layers.0.mlp.down_proj.weight", 1));
  CHECK(solved.rows("model.layers.0.mlp.up_proj.weight")[1] == "[24, 48)");
  CHECK(solved.rows("model.norm.weight")[3] == "[0, 64)");
  CHECK(solved.rows("lm_head.weight") == solved.rows("model.embed_tokens.weight"));
  CHECK(solved.rows("lm_head.weight")[0] == "[0, 25)");
}

TEST_CASE("biases on q, k and v are cut as their weights, and norms over heads are whole") {
  const Solved qwen2 = solve("qwen2", tiny_qwen2(), "tp=4");
  for (const std::string name : {"q", "k", "v"}) {
    const auto module = "model.layers.1.self_attn." + name + "_proj";
    CHECK(qwen2.rows(module + ".bias") == qwen2.rows(module + ".weight"));
  }
  CHECK(solve("qwen3", tiny_qwen3(), "tp=4").rows("model.layers.0.self_attn.q_norm.weight")[2] ==
        "[0, 8)");
}

TEST_CASE("biases that are added after a reduction are whole and say so") {
  TinyModel model = tiny_llama();
  model.tensors.push_back(spec("model.layers.0.self_attn.o_proj.bias", {64}));
  model.tensors.push_back(spec("model.layers.0.mlp.up_proj.bias", {96}));
  const Solved solved = solve("llama", model, "tp=2");
  CHECK(at(solved.resolution, solved.tensors, "model.layers.0.self_attn.o_proj.bias").by->bias ==
        "after_reduction");
  CHECK(at(solved.resolution, solved.tensors, "model.layers.0.mlp.up_proj.bias").by->bias == "");
  CHECK(solved.rows("model.layers.0.self_attn.o_proj.bias")[1] == "[0, 64)");
  CHECK(solved.rows("model.layers.0.mlp.up_proj.bias")[1] == "[48, 96)");
}

TEST_CASE("phi3 cuts its fused tensors as llama cuts the parts") {
  const LlamaSizes sizes{.heads = 8, .kv_heads = 2};
  const Solved fused = solve("phi3", tiny_phi3(sizes), "tp=4");
  CHECK(fused.rows("model.layers.0.self_attn.qkv_proj.weight") ==
        Held{"[0, 16) [64, 72) [80, 88)", "[16, 32) [64, 72) [80, 88)",
             "[32, 48) [72, 80) [88, 96)", "[48, 64) [72, 80) [88, 96)"});
  CHECK(fused.rows("model.layers.0.mlp.gate_up_proj.weight")[1] == "[24, 48) [120, 144)");
  CHECK(fused.rows("model.layers.0.mlp.down_proj.weight", 1)[1] == "[24, 48)");
}

/// ChatGLM 2 and 3, with names and shapes of the published checkpoints: 8 heads of 4, 2 of keys.
TinyModel tiny_chatglm() {
  TinyModel model{R"({"architectures": ["ChatGLMModel"], "model_type": "chatglm", "num_layers": 1,
    "hidden_size": 24, "num_attention_heads": 8, "kv_channels": 4, "multi_query_attention": true,
    "multi_query_group_num": 2, "ffn_hidden_size": 40, "padded_vocab_size": 96})",
                  {}};
  const std::string layer = "transformer.encoder.layers.0.";
  for (const auto& [name, shape] : std::vector<std::pair<std::string, Shape>>{
           {"transformer.embedding.word_embeddings.weight", {96, 24}},
           {"transformer.rotary_pos_emb.inv_freq", {1}},
           {layer + "input_layernorm.weight", {24}},
           {layer + "self_attention.query_key_value.weight", {48, 24}},
           {layer + "self_attention.query_key_value.bias", {48}},
           {layer + "self_attention.dense.weight", {24, 32}},
           {layer + "post_attention_layernorm.weight", {24}},
           {layer + "mlp.dense_h_to_4h.weight", {80, 24}},
           {layer + "mlp.dense_4h_to_h.weight", {24, 40}},
           {"transformer.encoder.final_layernorm.weight", {24}},
           {"transformer.output_layer.weight", {96, 24}}}) {
    model.tensors.push_back(spec(name, shape));
  }
  return model;
}

TEST_CASE("chatglm cuts queries by heads, and keys and values by the group that they are of") {
  const TinyModel model = tiny_chatglm();
  CHECK(detect_preset(config_of(model.config), model.tensors) == "chatglm");
  const Solved solved = solve("chatglm", model, "tp=4");
  const std::string layer = "transformer.encoder.layers.0.";
  const Held parts = {"[0, 8) [32, 36) [40, 44)", "[8, 16) [32, 36) [40, 44)",
                      "[16, 24) [36, 40) [44, 48)", "[24, 32) [36, 40) [44, 48)"};
  CHECK(solved.rows(layer + "self_attention.query_key_value.weight") == parts);
  CHECK(solved.rows(layer + "self_attention.query_key_value.bias") == parts);
  CHECK(solved.rows(layer + "self_attention.dense.weight", 1)[1] == "[8, 16)");
  CHECK(solved.rows(layer + "mlp.dense_h_to_4h.weight")[1] == "[10, 20) [50, 60)");
  CHECK(solved.rows(layer + "mlp.dense_4h_to_h.weight", 1)[1] == "[10, 20)");
  CHECK(solved.rows("transformer.output_layer.weight")[1] == "[24, 48)");
  CHECK(solved.resolution.warnings.empty());
}

TEST_CASE("the first ChatGLM's other order of Q, K and V is not taken for that of its successors") {
  std::string config = tiny_chatglm().config;
  config.replace(config.find("true"), 4, "false");
  CHECK(detect_preset(config_of(config), tiny_chatglm().tensors) == std::nullopt);
}

/// InternLM 2, with names and shapes of the published checkpoint: 8 heads of 4, 4 of keys.
TinyModel tiny_internlm2() {
  TinyModel model{R"({"architectures": ["InternLM2ForCausalLM"], "model_type": "internlm2",
    "num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 8, "num_key_value_heads": 4,
    "intermediate_size": 40, "vocab_size": 96, "bias": true})",
                  {}};
  const std::string layer = "model.layers.0.";
  for (const auto& [name, shape] :
       std::vector<std::pair<std::string, Shape>>{{"model.tok_embeddings.weight", {96, 32}},
                                                  {layer + "attention_norm.weight", {32}},
                                                  {layer + "attention.wqkv.weight", {64, 32}},
                                                  {layer + "attention.wqkv.bias", {64}},
                                                  {layer + "attention.wo.weight", {32, 32}},
                                                  {layer + "attention.wo.bias", {32}},
                                                  {layer + "ffn_norm.weight", {32}},
                                                  {layer + "feed_forward.w1.weight", {40, 32}},
                                                  {layer + "feed_forward.w3.weight", {40, 32}},
                                                  {layer + "feed_forward.w2.weight", {32, 40}},
                                                  {"model.norm.weight", {32}},
                                                  {"output.weight", {96, 32}}}) {
    model.tensors.push_back(spec(name, shape));
  }
  return model;
}

TEST_CASE("internlm2 keeps the queries, the key and the value of a group together") {
  const TinyModel model = tiny_internlm2();
  CHECK(detect_preset(config_of(model.config), model.tensors) == "internlm2");
  CHECK(detect_preset(config_of("{}"), model.tensors) == "internlm2");
  const Solved solved = solve("internlm2", model, "tp=3");
  const std::string layer = "model.layers.0.";
  const Held groups = {"[0, 32)", "[32, 48)", "[48, 64)"};
  CHECK(solved.rows(layer + "attention.wqkv.weight") == groups);
  CHECK(solved.rows(layer + "attention.wqkv.bias") == groups);
  CHECK(solved.rows(layer + "attention.wo.weight", 1) == Held{"[0, 16)", "[16, 24)", "[24, 32)"});
  CHECK(solved.rows(layer + "feed_forward.w3.weight")[1] == "[14, 27)");
  CHECK(solved.rows(layer + "feed_forward.w2.weight", 1)[1] == "[14, 27)");
  CHECK(solved.rows("output.weight")[1] == "[32, 64)");
  CHECK(at(solved.resolution, solved.tensors, layer + "attention.wo.bias").by->bias ==
        "after_reduction");
  CHECK(solved.resolution.warnings.empty());
  CHECK_ERROR(kGroups, solve("internlm2", model, "tp=8"));
}

TEST_CASE("gpt2 cuts kernels that are stored in x out, heads first, with or without the prefix") {
  for (const bool prefixed : {false, true}) {
    const std::string block = prefixed ? "transformer.h.0." : "h.0.";
    const Solved solved = solve("gpt2", tiny_gpt2(prefixed), "tp=2");
    const Held thirds = {"[0, 12) [24, 36) [48, 60)", "[12, 24) [36, 48) [60, 72)"};
    CHECK(solved.rows(block + "attn.c_attn.weight", 1) == thirds);
    CHECK(solved.rows(block + "attn.c_attn.bias") == thirds);
    CHECK(solved.rows(block + "attn.c_proj.weight") == Held{"[0, 12)", "[12, 24)"});
    CHECK(solved.rows(block + "mlp.c_fc.weight", 1)[1] == "[48, 96)");
    CHECK(solved.rows(block + "mlp.c_proj.weight")[1] == "[48, 96)");
    CHECK(solved.rows(block + "attn.bias", 2)[1] == "[0, 16)");
    CHECK(at(solved.resolution, solved.tensors, block + "mlp.c_proj.bias").by->bias ==
          "after_reduction");
  }
}

TEST_CASE("gpt_neox keeps q, k and v of a head together") {
  const Solved solved = solve("gpt_neox", tiny_gpt_neox(), "tp=4");
  CHECK(solved.rows("gpt_neox.layers.0.attention.query_key_value.weight")[1] == "[24, 48)");
  CHECK(solved.rows("gpt_neox.layers.0.attention.query_key_value.bias")[1] == "[24, 48)");
  CHECK(solved.rows("gpt_neox.layers.0.attention.dense.weight", 1)[1] == "[8, 16)");
}

TEST_CASE("mixtral puts experts over ep, each expert over tp, and the dense part over tp only") {
  const Solved solved = solve("mixtral", tiny_mixtral(), "ep=2,tp=2");
  CHECK(solved.ranks("model.layers.0.block_sparse_moe.experts.1.w1.weight") ==
        std::vector<i64>{0, 1});
  CHECK(solved.ranks("model.layers.0.block_sparse_moe.experts.3.w2.weight") ==
        std::vector<i64>{2, 3});
  CHECK(solved.rows("model.layers.0.block_sparse_moe.experts.0.w1.weight") ==
        Held{"[0, 48)", "[48, 96)", "not here", "not here"});
  CHECK(solved.rows("model.layers.0.self_attn.q_proj.weight") ==
        Held{"[0, 32)", "[32, 64)", "[0, 32)", "[32, 64)"});
  CHECK(solved.ranks("model.layers.0.block_sparse_moe.gate.weight").size() == 4);
}

TEST_CASE("pp puts whole layers on stages, and keeps the rest everywhere") {
  const Solved solved = solve("llama", tiny_llama({.layers = 3}), "pp=2,tp=2");
  CHECK(solved.ranks("model.layers.1.mlp.up_proj.weight") == std::vector<i64>{0, 1});
  CHECK(solved.ranks("model.layers.2.mlp.up_proj.weight") == std::vector<i64>{2, 3});
  CHECK(solved.ranks("model.embed_tokens.weight").size() == 4);
}

}  // namespace
}  // namespace shardtool::mapping
