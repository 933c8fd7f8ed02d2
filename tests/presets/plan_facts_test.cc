// Facts of plan about families, compared with the tensors that the transformers library saves.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/api/planning/planned_model.h"
#include "lib/mapping/document/glob.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/resolve/resolve.h"
#include "tests/presets/fixture.h"

namespace shardtool::api {
namespace {

using mapping::Fixture;
using mapping::fixture;
using mapping::fixtures;
using model::LayerCache;

/// Matrices without a class: state spaces, convolutions, side streams, poolers, projections between
/// modalities and for further tokens.
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

/// Binds a fixture on one device to its graph.
PlannedModel planned(const Fixture& fixture) {
  mapping::ResolveOptions options;
  options.mesh = mesh::Mesh({{"tp", 1}});
  AppliedMapping applied{mapping::load_preset(fixture.preset), {}, fixture.tensors};
  applied.resolution = mapping::resolve(applied.mapping, fixture.tensors, &fixture.config, options);
  return planned_model(&fixture.config, nullptr, applied);
}

std::vector<LayerCache> caches_of(const Fixture& fixture) {
  const PlannedModel model = planned(fixture);
  CAPTURE(model.why_not);
  REQUIRE(model.bound);
  return model::attention_caches(*model.bound);
}

TEST_CASE("matrices of every family have a class, but for those that are known to have none") {
  const auto known = mapping::glob_filter(kOther);
  for (const Fixture& fixture : fixtures()) {
    CAPTURE(fixture.family);
    const PlannedModel model = planned(fixture);
    REQUIRE(model.bound);
    for (const auto& [tensor, found] : model::tensor_classes(*model.bound)) {
      const TensorSpec& spec = model.placed.specs[tensor];
      if (spec.shape.size() < 2 || found != model::TensorClass::kOther) continue;
      CAPTURE(spec.name);
      CHECK(known(spec.name));
    }
  }
}

bool begins_with_any(const std::string& family, std::initializer_list<const char*> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const char* beginning) { return family.starts_with(beginning); });
}

TEST_CASE("every decoder caches, without a doubt, encoders and state spaces do not") {
  for (const Fixture& fixture : fixtures()) {
    CAPTURE(fixture.family);
    const std::vector<LayerCache> caches = caches_of(fixture);
    const bool has_caches = !begins_with_any(
        fixture.family, {"bert", "roberta", "modernbert", "distilbert", "electra", "deberta_v2",
                         "mamba", "falcon_mamba", "t5_encoder", "eurobert", "megatron_bert"});
    CHECK(caches.empty() == !has_caches);
    for (const LayerCache& layer : caches)
      CHECK(layer.latent ==
            begins_with_any(fixture.family,
                            {"deepseek", "glm4_moe_lite", "glm_moe_dsa", "kimi", "minicpm3",
                             "youtu", "bailing", "longcat", "hy_v4", "axk", "mistral4",
                             "mistral3_mistral4", "mistral_large4", "dots3_note"}));
  }
}

TEST_CASE("an index of positions keeps its key beside the latent") {
  for (const LayerCache& layer : caches_of(fixture("deepseek_v3")))
    CHECK(layer.unit_elements == 10 + 2);
  for (const LayerCache& layer : caches_of(fixture("deepseek_v32")))
    CHECK(layer.unit_elements == 10 + 2 + 4);
}

TEST_CASE("a layer that does not rotate keeps its latent alone, beside the key of an index") {
  const std::vector<LayerCache> caches = caches_of(fixture("mistral_large4"));
  REQUIRE(caches.size() == 2);
  CHECK(caches[0].unit_elements == 10 + 2 + 4);
  CHECK(caches[1].unit_elements == 10);
}

TEST_CASE("layers with a window keep a latent of their own size, and no key of an index") {
  const std::vector<LayerCache> caches = caches_of(fixture("dots3_note"));
  REQUIRE(caches.size() == 2);
  CHECK(caches[0].unit_elements == 12 + 3);
  CHECK(caches[1].unit_elements == 10 + 2 + 4);
}

TEST_CASE("entries of several tokens lie beside a window of single ones, and keys of an index") {
  const Fixture& deepseek = fixture("deepseek_v4");
  std::vector<LayerCache> found = caches_of(deepseek);
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

/// Returns the rows of a tensor, or those of the keys if a layer uses its keys as values.
i64 rows_of(const PlannedModel& model, const std::string& name, i64 otherwise) {
  const auto& specs = model.placed.specs;
  const auto found = std::find_if(specs.begin(), specs.end(),
                                  [&](const TensorSpec& tensor) { return tensor.name == name; });
  return found == specs.end() ? otherwise : found->shape.front();
}

TEST_CASE("keys and values that projections make are as many as config.json says heads have") {
  for (const Fixture& fixture : fixtures()) {
    CAPTURE(fixture.family);
    const PlannedModel model = planned(fixture);
    for (const LayerCache& layer : model::attention_caches(*model.bound)) {
      const TensorSpec& tensor = model.placed.specs[layer.tensor];
      const size_t at = tensor.name.find("k_proj");
      if (at == std::string::npos) continue;
      const i64 keys = tensor.shape.front();
      const std::string values = std::string(tensor.name).replace(at, 1, "v");
      CHECK(keys + rows_of(model, values, keys) == layer.units * layer.unit_elements);
    }
  }
}

TEST_CASE("layers that read the keys of earlier ones cache none") {
  const Fixture& gemma = fixture("gemma3n_text");
  REQUIRE(gemma.config.size("num_kv_shared_layers") == 2);
  std::vector<i64> layers;
  for (const LayerCache& layer : caches_of(gemma)) layers.push_back(layer.layer);
  CHECK(layers == std::vector<i64>{0, 1});
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
    for (const LayerCache& layer : caches_of(mixed)) layers.push_back(layer.layer);
    CHECK(layers == attending);
  }
}

TEST_CASE("layers that take turns with shared projections cache each their own keys") {
  const Fixture& zamba = fixture("zamba2");
  std::vector<std::pair<i64, std::string>> layers;
  const PlannedModel model = planned(zamba);
  for (const LayerCache& layer : model::attention_caches(*model.bound))
    layers.emplace_back(layer.layer, model.placed.specs[layer.tensor].name.substr(0, 15));
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
    const std::vector<LayerCache> caches = caches_of(fixture);
    const auto cross = std::count_if(caches.begin(), caches.end(),
                                     [](const LayerCache& layer) { return layer.cross; });
    const nlohmann::json* two_stacks = fixture.config.find("is_encoder_decoder");
    const bool attends = two_stacks != nullptr && *two_stacks == true;
    CHECK(cross == (attends ? std::ssize(caches) / 2 : 0));
    CHECK(model::source_positions(*planned(fixture).bound).has_value() ==
          (fixture.family == "whisper"));
    families += attends ? 1 : 0;
  }
  CHECK(families >= 10);
}

}  // namespace
}  // namespace shardtool::api
