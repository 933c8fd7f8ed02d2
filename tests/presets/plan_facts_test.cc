// What plan knows about families, held against the tensors that the transformers library saves.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/mapping/attention_cache.h"
#include "lib/mapping/document/glob.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/mapping/tensor_classes.h"
#include "tests/presets/fixture.h"

namespace shardtool::mapping {
namespace {

/// Matrices that belong to no class: state spaces, convolutions, side streams, projections between
/// modalities and of further tokens, poolers.
constexpr const char* kOther =
    "**{mixer,mamba,conv,mtp_linear_proj,pooler,seq_relationship,conv1,conv2,merger,downsample,eh_"
    "proj,mm_projector,"
    "multi_modal_projector,vision_language_adapter,vit_large_projector,vit_downsampler1,"
    "vit_downsampler2,downsampler1,downsampler2,head,linear_fc1,linear_fc2,fc,altup,laurel,per_"
    "layer_input_gate,"
    "per_layer_projection,per_layer_model_projection,A_log,class_embedding,"
    "positional_embedding_vlm,attn_hc,ffn_hc,hc_attn_layer,hc_mlp_layer,hc_attn_fn,hc_ffn_fn,"
    "attn_hyper_connection,mlp_hyper_connection,hyper_connection_mixer,ple,mtp.0.e_proj,mtp.0.h_"
    "proj}**";

TEST_CASE("matrices of every family have a class, but for those that are known to have none") {
  TensorClasses classes;
  const int other = static_cast<int>(classes.names().size()) - 1;
  const auto known = glob_filter(kOther);
  for (const Fixture& fixture : fixtures()) {
    for (const TensorSpec& tensor : fixture.tensors) {
      if (tensor.shape.size() < 2 || classes.of(tensor.name) != other) continue;
      CAPTURE(fixture.family);
      CAPTURE(tensor.name);
      CHECK(known(tensor.name));
    }
  }
}

/// What a preset, over one device, and config.json say together.
AttentionCache cache_of(const Fixture& fixture) {
  ResolveOptions options;
  options.mesh = mesh::Mesh({{"tp", 1}});
  const Resolution resolution =
      resolve(load_preset(fixture.preset), fixture.tensors, &fixture.config, options);
  return attention_cache(fixture.config, fixture.tensors, resolution.axis_sizes);
}

bool begins_with_any(const std::string& family, std::initializer_list<const char*> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const char* beginning) { return family.starts_with(beginning); });
}

TEST_CASE("every decoder caches, without a doubt, encoders and state spaces do not") {
  for (const Fixture& fixture : fixtures()) {
    CAPTURE(fixture.family);
    const AttentionCache cache = cache_of(fixture);
    const bool caches = !begins_with_any(
        fixture.family, {"bert", "roberta", "modernbert", "distilbert", "electra", "deberta_v2",
                         "mamba", "falcon_mamba", "t5_encoder", "eurobert", "megatron_bert"});
    CHECK(cache.layers.empty() == !caches);
    CHECK(cache.notes.empty() == caches);
    for (const LayerCache& layer : cache.layers)
      CHECK(layer.latent ==
            begins_with_any(fixture.family,
                            {"deepseek", "glm4_moe_lite", "glm_moe_dsa", "kimi", "minicpm3",
                             "youtu", "bailing", "longcat", "hy_v4", "axk", "mistral4",
                             "mistral3_mistral4", "mistral_large4", "dots3_note"}));
  }
}

TEST_CASE("an index of positions keeps its key beside the latent") {
  for (const LayerCache& layer : cache_of(fixture("deepseek_v3")).layers)
    CHECK(layer.unit_elements == 10 + 2);
  for (const LayerCache& layer : cache_of(fixture("deepseek_v32")).layers)
    CHECK(layer.unit_elements == 10 + 2 + 4);
}

TEST_CASE("a layer that does not rotate keeps its latent alone, beside the key of an index") {
  const AttentionCache cache = cache_of(fixture("mistral_large4"));
  REQUIRE(cache.layers.size() == 2);
  CHECK(cache.layers[0].unit_elements == 10 + 2 + 4);
  CHECK(cache.layers[1].unit_elements == 10);
}

TEST_CASE("layers with a window keep a latent of their own size, and no key of an index") {
  const AttentionCache cache = cache_of(fixture("dots3_note"));
  REQUIRE(cache.layers.size() == 2);
  CHECK(cache.layers[0].unit_elements == 12 + 3);
  CHECK(cache.layers[1].unit_elements == 10 + 2 + 4);
}

TEST_CASE("entries of several tokens lie beside a window of single ones, and keys of an index") {
  const Fixture& deepseek = fixture("deepseek_v4");
  std::vector<LayerCache> found = cache_of(deepseek).layers;
  struct Kept {
    i64 layer, elements, window, stride;
  };
  const std::vector<Kept> expected{{0, 8, 8, 1}, {1, 8, 8, 1}, {1, 8, 0, 4},
                                   {1, 4, 0, 4}, {2, 8, 8, 1}, {2, 8, 0, 128}};
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i].layer == expected[i].layer);
    CHECK(found[i].units * found[i].unit_elements == expected[i].elements);
    CHECK(found[i].window == expected[i].window);
    CHECK(found[i].stride == expected[i].stride);
  }
}

/// The rows of a tensor; those of the keys where a layer's values are its keys.
i64 rows_of(const Fixture& fixture, const std::string& name, i64 otherwise) {
  const auto found = std::find_if(fixture.tensors.begin(), fixture.tensors.end(),
                                  [&](const TensorSpec& tensor) { return tensor.name == name; });
  return found == fixture.tensors.end() ? otherwise : found->shape.front();
}

TEST_CASE("keys and values that projections make are as many as config.json says heads have") {
  for (const Fixture& fixture : fixtures()) {
    CAPTURE(fixture.family);
    for (const LayerCache& layer : cache_of(fixture).layers) {
      const TensorSpec& tensor = fixture.tensors[layer.tensor];
      const size_t at = tensor.name.find("k_proj");
      if (at == std::string::npos) continue;
      const i64 keys = tensor.shape.front();
      const std::string values = std::string(tensor.name).replace(at, 1, "v");
      CHECK(keys + rows_of(fixture, values, keys) == layer.units * layer.unit_elements);
    }
  }
}

TEST_CASE("layers that read the keys of earlier ones cache none, though projections are stored") {
  const Fixture& gemma = fixture("gemma3n_text");
  REQUIRE(gemma.config.size("num_kv_shared_layers") == 2);
  std::vector<TensorSpec> tensors = gemma.tensors;
  for (const char* layer : {"2", "3"}) {
    tensors.push_back(
        {fmt::format("model.layers.{}.self_attn.k_proj.weight", layer), Dtype::kF32, {1, 1}});
  }
  std::vector<i64> layers;
  for (const LayerCache& layer : attention_cache(gemma.config, tensors).layers)
    layers.push_back(layer.layer);
  CHECK(layers == std::vector<i64>{0, 1});
}

TEST_CASE("which layers keep a window is said by words, or by numbers as published") {
  const Fixture& mimo = fixture("mimo_v2_flash");
  const auto windows = [&](const std::string& layers) {
    const auto config = parse_config(
        fmt::format(R"({{"num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4,
                         "head_dim": 6, "sliding_window": 16, {}}})",
                    layers),
        "config.json");
    std::vector<i64> found;
    for (const LayerCache& layer : attention_cache(config, mimo.tensors).layers)
      found.push_back(layer.window);
    return found;
  };
  CHECK(windows(R"("layer_types": ["full_attention", "sliding_attention"])") ==
        std::vector<i64>{0, 16});
  CHECK(windows(R"("hybrid_layer_pattern": [0, 1])") == std::vector<i64>{0, 16});
  CHECK(windows(R"("hybrid_layer_pattern": [1, 0])") == std::vector<i64>{16, 0});
}

TEST_CASE("layers of states cache no keys, though they have projections of that name") {
  for (const char* family : {"kimi_linear", "minimax"}) {
    const Fixture& mixed = fixture(family);
    const nlohmann::json* kinds = mixed.config.find("layer_types");
    REQUIRE(kinds != nullptr);
    std::vector<i64> attending;
    for (size_t n = 0; n < kinds->size(); ++n) {
      if (kinds->at(n) == "full_attention") attending.push_back(static_cast<i64>(n));
    }
    REQUIRE(attending.size() < kinds->size());
    std::vector<i64> layers;
    for (const LayerCache& layer : cache_of(mixed).layers) layers.push_back(layer.layer);
    CHECK(layers == attending);
  }
}

TEST_CASE("layers that take turns with shared projections cache each their own keys") {
  const Fixture& zamba = fixture("zamba2");
  std::vector<std::pair<i64, std::string>> layers;
  for (const LayerCache& layer : cache_of(zamba).layers)
    layers.emplace_back(layer.layer, zamba.tensors[layer.tensor].name.substr(0, 15));
  CHECK(layers == std::vector<std::pair<i64, std::string>>{{1, "model.layers.1."},
                                                           {3, "model.layers.3."},
                                                           {4, "model.layers.1."},
                                                           {5, "model.layers.3."}});
}

TEST_CASE(
    "every layer of a decoder that attends to an encoder caches the encoder's positions, too") {
  int families = 0;
  for (const Fixture& fixture : fixtures()) {
    CAPTURE(fixture.family);
    const AttentionCache cache = cache_of(fixture);
    const auto cross = std::count_if(cache.layers.begin(), cache.layers.end(),
                                     [](const LayerCache& layer) { return layer.cross; });
    const bool attends =
        begins_with_any(fixture.family, {"t5", "whisper", "bart", "mbart", "marian", "m2m_100",
                                         "pegasus", "blenderbot"}) &&
        fixture.family != "t5_encoder";
    CHECK(cross == (attends ? std::ssize(cache.layers) / 2 : 0));
    CHECK(cache.source_positions.has_value() == (fixture.family == "whisper"));
    families += attends ? 1 : 0;
  }
  CHECK(families == 10);
}

TEST_CASE("a decoder whose attention to an encoder has no known name has a reason instead") {
  const auto& all = fixtures();
  const auto llama = std::find_if(all.begin(), all.end(),
                                  [](const Fixture& fixture) { return fixture.family == "llama"; });
  REQUIRE(llama != all.end());
  const auto config = parse_config(
      R"({"model_type": "novel", "num_hidden_layers": 2, "num_attention_heads": 8, "head_dim": 6,
          "is_encoder_decoder": true})",
      "config.json");
  const AttentionCache cache = attention_cache(config, llama->tensors);
  CHECK_FALSE(cache.layers.empty());
  REQUIRE(cache.notes.size() == 1);
  CHECK(cache.notes.front().find("attention to an encoder") != std::string::npos);
}

}  // namespace
}  // namespace shardtool::mapping
