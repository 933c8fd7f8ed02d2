// Tensors that one layer lacks: rule ST0407, and the others that find a lost tensor of a layer.
#include "lib/check/layers.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/format/checkpoint.h"
#include "tests/golden/models.h"
#include "tests/presets/fixture.h"

namespace shardtool::test {
namespace {

using Specs = std::vector<TensorSpec>;
using TensorNames = std::vector<std::string>;

/// True if a name has the number of a layer, and no number of an expert but 0, whose tensors have
/// the names of all others.
bool is_of_layer(const std::string& name) {
  const size_t experts = name.find(".experts.");
  if (experts != name.npos && std::isdigit(name[experts + 9]) != 0 &&
      name.compare(experts + 9, 2, "0.") != 0)
    return false;
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
    if (check::numbered(name, std::string_view(name).substr(0, dot + 1))) return true;
  }
  return false;
}

Specs without(const Specs& tensors, const std::string& lost) {
  Specs left = tensors;
  std::erase_if(left, [&](const TensorSpec& tensor) { return tensor.name == lost; });
  return left;
}

bool has_warnings(const Specs& tensors, const mapping::ModelConfig& config) {
  check::Findings findings{check::Profile("")};
  const check::CheckedModel model{tensors, config, "config.json"};
  check::check_model(model, findings);
  check::check_quantised(model, findings);
  return std::ranges::any_of(findings.all(), [](const check::Finding& finding) {
    return finding.severity >= check::Severity::kWarning;
  });
}

/// Tensors of layers, and those of them whose loss is not found.
struct Escapes {
  int lost = 0;
  int unfound = 0;

  void add(const Specs& tensors, const mapping::ModelConfig& config) {
    for (const TensorSpec& tensor : tensors) {
      if (!is_of_layer(tensor.name)) continue;
      ++lost;
      if (!has_warnings(without(tensors, tensor.name), config)) ++unfound;
    }
  }
};

// Losses that escape: in a model without a graph, a tensor of a kind of layers of which there are
// fewer than two; in an encoder or in layers that predict further tokens, which no graph reads, a
// tensor of a list of fewer than four; a bias of its own where one layer is of its kind. A weight
// whose bias is there does not escape.
constexpr int kFamilyEscapes = 679;
constexpr int kGoldenEscapes = 97;

TEST_CASE("what a layer of a family loses is found, unless nothing else tells of it") {
  Escapes escapes;
  for (const mapping::Fixture& fixture : mapping::fixtures())
    escapes.add(fixture.tensors, fixture.config);
  MESSAGE(escapes.unfound << " of " << escapes.lost << " losses escape");
  CHECK(escapes.lost > 4000);
  CHECK(escapes.unfound <= kFamilyEscapes);
}

TEST_CASE("what a layer of a golden model loses is found, unless nothing else tells of it") {
  Escapes escapes;
  for (const std::string& model : golden::model_names()) {
    const std::string& folder = golden::model_folder(model);
    Specs tensors;
    for (const format::StoredTensor& tensor : format::open_checkpoint(folder).tensors)
      tensors.push_back({tensor.name, tensor.dtype, tensor.shape});
    escapes.add(tensors, mapping::load_config(folder + "/config.json"));
  }
  MESSAGE(escapes.unfound << " of " << escapes.lost << " losses escape");
  CHECK(escapes.lost > 4000);
  CHECK(escapes.unfound <= kGoldenEscapes);
}

/// Returns the tensors that findings of ST0407 name.
TensorNames layer_tensors(const Specs& tensors, const mapping::ModelConfig& config) {
  check::Findings findings{check::Profile("")};
  check::check_model({tensors, config, "config.json"}, findings);
  TensorNames names;
  for (const check::Finding& finding : findings.all()) {
    if (finding.rule == check::CheckRule::kLayerTensor) names.push_back(finding.tensor);
  }
  return names;
}

constexpr int kLayers = 5;

/// Makes tensors with these names in each of five layers.
Specs layers_of(const std::string& prefix, const TensorNames& names) {
  Specs made;
  for (int layer = 0; layer < kLayers; ++layer) {
    for (const std::string& name : names)
      made.push_back({fmt::format("{}{}.{}", prefix, layer, name), Dtype::kBF16, {8}});
  }
  return made;
}

/// Returns the fixture of Llama with five layers, all of them like the first.
Specs long_llama(mapping::ModelConfig& config) {
  const mapping::Fixture& fixture = mapping::fixture("llama");
  auto json = nlohmann::json::parse(fixture.config_text);
  json["num_hidden_layers"] = kLayers;
  config = mapping::parse_config(json.dump(), "config.json");
  const std::string first = "model.layers.0.";
  Specs made;
  for (const TensorSpec& tensor : fixture.tensors) {
    if (tensor.name.find("layers.1.") != tensor.name.npos) continue;
    made.push_back(tensor);
    for (int layer = 1; layer < kLayers && tensor.name.starts_with(first); ++layer) {
      made.push_back(tensor);
      made.back().name = fmt::format("model.layers.{}.{}", layer, tensor.name.substr(first.size()));
    }
  }
  return made;
}

TEST_CASE("a layer of an encoder that no graph reads lacks what all the others have") {
  mapping::ModelConfig config = mapping::fixture("llama").config;
  const Specs language = long_llama(config);
  const Specs encoder = layers_of(
      "tower.encoder.blocks.",
      {"norm.weight", "attn.qkv.weight", "attn.qkv.bias", "attn.proj.weight", "mlp.fc.weight"});
  Specs model = language;
  model.insert(model.end(), encoder.begin(), encoder.end());
  CHECK(layer_tensors(model, config) == TensorNames{});
  for (const TensorSpec& lost : encoder)
    CHECK(layer_tensors(without(model, lost.name), config) == TensorNames{lost.name});
  // Two layers without it are of a kind of their own.
  const std::string first = "tower.encoder.blocks.0.attn.qkv.bias";
  const std::string last = "tower.encoder.blocks.4.attn.qkv.bias";
  CHECK(layer_tensors(without(without(model, first), last), config) == TensorNames{});
}

TEST_CASE("the steps of a projector are no layers") {
  mapping::ModelConfig config = mapping::fixture("llama").config;
  Specs model = long_llama(config);
  const Specs projector = layers_of("projector.", {"weight", "bias"});
  model.insert(model.end(), projector.begin(), projector.end());
  CHECK(layer_tensors(without(model, "projector.2.bias"), config) == TensorNames{});
}

TEST_CASE("a layer with another MLP lacks what the attention of all the others has") {
  const auto config = mapping::parse_config(
      R"({"model_type": "not_known", "num_hidden_layers": 5})", "config.json");
  const TensorNames attention{"self_attn.q_proj.weight", "self_attn.q_proj.bias",
                              "self_attn.o_proj.weight"};
  Specs model = layers_of("model.layers.", attention);
  for (int layer = 0; layer < kLayers; ++layer) {
    const TensorNames mlp =
        layer == 0 ? TensorNames{"up_proj", "down_proj"} : TensorNames{"experts.up", "router"};
    for (const std::string& name : mlp)
      model.push_back(
          {fmt::format("model.layers.{}.mlp.{}.weight", layer, name), Dtype::kBF16, {8}});
  }
  CHECK(layer_tensors(model, config) == TensorNames{});
  for (const std::string& name : attention) {
    const std::string lost = "model.layers.0." + name;
    CHECK(layer_tensors(without(model, lost), config) == TensorNames{lost});
  }
}

TEST_CASE("a bias that one of many layers has, or that one of them lacks, is found") {
  mapping::ModelConfig config = mapping::fixture("llama").config;
  const Specs model = long_llama(config);
  Specs plain = model;
  std::erase_if(plain, [](const TensorSpec& tensor) { return tensor.name.ends_with(".bias"); });
  CHECK(layer_tensors(model, config) == TensorNames{});
  CHECK(layer_tensors(plain, config) == TensorNames{});
  for (const TensorSpec& bias : model) {
    if (!bias.name.ends_with(".o_proj.bias") && !bias.name.ends_with(".down_proj.bias")) continue;
    Specs lone = plain;
    lone.push_back(bias);
    CHECK(layer_tensors(lone, config) == TensorNames{bias.name});
    CHECK(layer_tensors(without(model, bias.name), config) == TensorNames{bias.name});
  }
}

TEST_CASE("a bias is missed among those of the matrices beside it, also in a single layer") {
  const mapping::Fixture& fixture = mapping::fixture("internvl");
  for (const char* matrix : {"q_proj", "k_proj", "v_proj"}) {
    const std::string lost = fmt::format("vision_tower.encoder.layer.0.attention.{}.bias", matrix);
    const Specs left = without(fixture.tensors, lost);
    REQUIRE(left.size() + 1 == fixture.tensors.size());
    CHECK(layer_tensors(left, fixture.config) == TensorNames{lost});
  }
}

TEST_CASE("a weight is missed where its bias is there, also in a single layer without a graph") {
  const auto config = mapping::parse_config(
      R"({"model_type": "not_known", "num_hidden_layers": 1})", "config.json");
  Specs model;
  for (const std::string name :
       {"norm.weight", "norm.bias", "attn.bias", "attn.qkv.weight", "attn.qkv.bias",
        "attn.out.weight", "mlp.codes", "mlp.scales", "mlp.bias"}) {
    model.push_back({"model.layers.0." + name, Dtype::kBF16, {8}});
  }
  CHECK(layer_tensors(model, config) == TensorNames{});
  for (const TensorSpec& lost : model) {
    const bool has_bias = lost.name.ends_with("norm.weight") || lost.name.ends_with("qkv.weight");
    CHECK(layer_tensors(without(model, lost.name), config) ==
          (has_bias ? TensorNames{lost.name} : TensorNames{}));
  }
}

}  // namespace
}  // namespace shardtool::test
