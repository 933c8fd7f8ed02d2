// Models of every family that the transformers library writes have no findings, regardless of the
// names of sizes in config.json: a check with false alarms is switched off.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "lib/check/model.h"
#include "lib/format/checkpoint.h"
#include "lib/model/bind.h"
#include "lib/model/graph/graph_list.h"
#include "tests/golden/models.h"
#include "tests/presets/fixture.h"

namespace shardtool::test {
namespace {

TEST_CASE("models of every family contradict neither their config.json nor themselves") {
  REQUIRE(mapping::fixtures().size() > 50);
  for (const mapping::Fixture& fixture : mapping::fixtures()) {
    CAPTURE(fixture.family);
    check::Findings findings{check::Profile("")};
    const check::CheckedModel model{fixture.tensors, fixture.config, "config.json"};
    check::check_model(model, findings);
    check::check_quantised(model, findings);
    for (const check::Finding& finding : findings.all()) {
      if (finding.severity < check::Severity::kWarning) continue;
      FAIL_CHECK(check::rule_info(finding.rule).id << " " << finding.tensor << ": "
                                                   << finding.message << "; " << finding.found
                                                   << " | " << finding.expected);
    }
  }
}

/// Returns "ST0418 NAME" for each finding about a golden model that lacks a tensor.
std::vector<std::string> findings_without(const std::string& model, const std::string& lost) {
  const std::string& folder = golden::model_folder(model);
  std::vector<TensorSpec> tensors;
  for (const format::StoredTensor& tensor : format::open_checkpoint(folder).tensors) {
    if (tensor.name != lost) tensors.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  check::Findings findings{check::Profile("")};
  check::check_model({tensors, mapping::load_config(folder + "/config.json"), "config.json"},
                     findings);
  std::vector<std::string> found;
  for (const check::Finding& finding : findings.all()) {
    if (finding.severity < check::Severity::kWarning) continue;
    found.push_back(fmt::format("{} {}", check::rule_info(finding.rule).id, finding.tensor));
  }
  return found;
}

TEST_CASE("golden models lack nothing, although layers share tensors or have none of their own") {
  for (const std::string& model : golden::model_names()) {
    CAPTURE(model);
    CHECK(findings_without(model, "") == std::vector<std::string>{});
  }
}

/// Returns the golden models and tensors of a table for which the only finding is not of this rule.
using Losses = std::vector<std::pair<std::string, std::string>>;
Losses unfound(std::string_view rule, const Losses& losses) {
  Losses unfound;
  for (const auto& [model, lost] : losses) {
    const std::vector<std::string> expected{fmt::format("{} {}", rule, lost)};
    if (findings_without(model, lost) != expected) unfound.emplace_back(model, lost);
  }
  return unfound;
}

TEST_CASE("layers that share tensors, or have none of their own, lack others all the same") {
  CHECK(unfound("ST0418", {{"modernbert", "model.layers.2.attn_norm.weight"},
                           {"zamba2_one_block", "model.layers.1.mamba_decoder.mamba.D"},
                           {"glm_moe_dsa_taken", "model.layers.0.self_attn.indexer.wk.weight"}}) ==
        Losses{});
}

TEST_CASE("a layer of the set that a variant names has no other variant") {
  CHECK(unfound("ST0418", {{"gemma4_text", "model.layers.0.self_attn.v_proj.weight"},
                           {"hy_v4", "model.layers.0.self_attn.indexer.wq_b.weight"},
                           {"lfm3", "model.layers.2.post_ffn_norm.weight"},
                           {"qwen3_vl", "model.visual.deepstack_merger_list.1.norm.weight"}}) ==
        Losses{});
}

TEST_CASE("a variant of which the model has other tensors is not given up for a lost one") {
  CHECK(unfound("ST0418", {{"dots1", "model.layers.1.self_attn.k_norm.weight"},
                           {"ernie4_5_moe", "model.layers.1.mlp.shared_experts.up_proj.weight"},
                           {"bert", "cls.predictions.transform.dense.weight"},
                           {"distilbert", "vocab_transform.weight"},
                           {"exaone4_5", "model.visual.patch_embed.proj.weight"},
                           {"gemma3", "vision_tower.embeddings.patch_embedding.weight"}}) ==
        Losses{});
}

TEST_CASE("a lost output matrix is found, also of a model that could use its table of words") {
  CHECK(unfound("ST0418", {{"gpt_neox", "embed_out.weight"},
                           {"internlm2", "output.weight"},
                           {"falcon_mamba", "lm_head.weight"},
                           {"internvl", "language_model.lm_head.weight"}}) == Losses{});
  CHECK(unfound("ST0410", {{"seed_oss", "lm_head.weight"}}) == Losses{});
}

TEST_CASE("a tensor that an op can do without is found if it has it in other layers") {
  CHECK(unfound("ST0407", {{"seed_oss", "model.layers.1.self_attn.k_proj.bias"},
                           {"gpt_oss", "model.layers.1.self_attn.v_proj.bias"},
                           {"biogpt", "biogpt.layers.1.final_layer_norm.weight"},
                           {"mamba", "backbone.layers.1.mixer.in_proj.bias"}}) == Losses{});
}

TEST_CASE("layers that attend to another one's keys lack those and nothing else") {
  const mapping::Fixture& fixture = mapping::fixture("gemma3n_text");
  const std::string lost = "model.layers.3.self_attn.q_proj.weight";
  std::vector<TensorSpec> tensors = fixture.tensors;
  CHECK(std::erase_if(tensors, [&](const TensorSpec& tensor) { return tensor.name == lost; }) == 1);
  check::Findings findings{check::Profile("")};
  check::check_model({tensors, fixture.config, "config.json"}, findings);
  REQUIRE(findings.all().size() == 1);
  CHECK(findings.all()[0].rule == check::CheckRule::kTensorMissing);
  CHECK(findings.all()[0].tensor == lost);
}

TEST_CASE("a tensor that a model needs and lacks is an error, although other layers have it") {
  for (const char* family : {"llama", "qwen3", "mixtral"}) {
    const mapping::Fixture& fixture = mapping::fixture(family);
    for (const TensorSpec& lost : fixture.tensors) {
      if (lost.name.ends_with(".bias")) continue;  // models without it exist
      CAPTURE(lost.name);
      std::vector<TensorSpec> tensors = fixture.tensors;
      std::erase_if(tensors, [&](const TensorSpec& tensor) { return tensor.name == lost.name; });
      check::Findings findings{check::Profile("")};
      check::check_model({tensors, fixture.config, "config.json"}, findings);
      CHECK(std::ranges::any_of(findings.all(), [](const check::Finding& finding) {
        return finding.severity == check::Severity::kError;
      }));
    }
  }
}

TEST_CASE("layers of another kind need not have what no layer of their kind has") {
  const mapping::Fixture& fixture = mapping::fixture("gemma4_moe");
  const auto findings_without = [&](const std::string& lost) {
    std::vector<TensorSpec> tensors = fixture.tensors;
    std::erase_if(tensors, [&](const TensorSpec& tensor) { return tensor.name == lost; });
    check::Findings findings{check::Profile("")};
    check::check_model({tensors, fixture.config, "config.json"}, findings);
    std::vector<std::string> named;
    for (const check::Finding& finding : findings.all()) named.push_back(finding.tensor);
    return named;
  };
  using Names = std::vector<std::string>;
  const std::string values = "model.layers.2.self_attn.v_proj.weight";
  const std::string keys = "model.layers.3.self_attn.k_proj.weight";
  CHECK(findings_without("") == Names{});
  CHECK(findings_without(values) == Names{values});
  CHECK(findings_without(keys) == Names{keys});
}

TEST_CASE("layers that compress tokens otherwise are of other kinds, as compress_ratios says") {
  auto config = nlohmann::json::parse(mapping::fixture("deepseek_v4").config_text);
  config.erase("layer_types");
  config.erase("mlp_layer_types");
  config["num_hidden_layers"] = 4;
  config["compress_ratios"] = {4, 128, 128, 4};
  // The graph reads neither of these.
  std::vector<TensorSpec> tensors;
  const auto add = [&](int layer, const char* name) {
    tensors.push_back({fmt::format("layers.{}.attn.{}.weight", layer, name), Dtype::kBF16, {4, 4}});
  };
  for (const int layer : {0, 1, 2, 3}) add(layer, "compressor.own");
  for (const int layer : {0, 3}) add(layer, "indexer.own");
  const auto findings_with = [&] {
    check::Findings findings{check::Profile("")};
    const auto read = mapping::parse_config(config.dump(), "config.json");
    check::check_model({tensors, read, "config.json"}, findings);
    return std::ranges::count(findings.all(), check::CheckRule::kLayerTensor,
                              &check::Finding::rule);
  };
  CHECK(findings_with() == 0);
  config["compress_ratios"] = {4, 4, 4, 4};
  CHECK(findings_with() == 2);
}

TEST_CASE("an output matrix may be packed, and only bytes are quantised blocks") {
  const mapping::Fixture& fixture = mapping::fixture("llama");
  REQUIRE(fixture.config.find("tie_word_embeddings")->get<bool>() == false);
  std::vector<TensorSpec> tensors = fixture.tensors;
  for (TensorSpec& tensor : tensors) {
    if (tensor.name == "lm_head.weight") tensor = {"lm_head.qweight", Dtype::kI32, {6, 101}};
  }
  tensors.push_back({"lm_head.scales", Dtype::kF16, {6, 101}});
  tensors.push_back({"router.seen_blocks", Dtype::kF32, {3}});
  check::Findings findings{check::Profile("")};
  check::check_model({tensors, fixture.config, "config.json"}, findings);
  check::check_quantised({tensors, fixture.config, "config.json"}, findings);
  const auto is_about_them = [](const check::Finding& finding) {
    return finding.rule == check::CheckRule::kHeadMissing ||
           finding.rule == check::CheckRule::kScaleMissing;
  };
  CHECK(std::ranges::none_of(findings.all(), is_about_them));
}

TEST_CASE("weights in a form that is not described may have any names") {
  const mapping::Fixture& fixture = mapping::fixture("llama");
  auto config = nlohmann::json::parse(fixture.config_text);
  std::vector<TensorSpec> tensors;
  for (TensorSpec tensor : fixture.tensors) {
    const size_t leaf = tensor.name.find("_proj.weight");
    if (leaf == tensor.name.npos) {
      tensors.push_back(std::move(tensor));
      continue;
    }
    const std::string stem = tensor.name.substr(0, leaf) + "_proj";
    tensors.push_back({stem + ".codes", Dtype::kI16, {tensor.shape[0], 6, 1}});
    tensors.push_back({stem + ".scales", Dtype::kF16, {tensor.shape[0], 1, 1, 1}});
  }
  const auto errors = [&](const char* method) {
    config["quantization_config"]["quant_method"] = method;
    const auto read = mapping::parse_config(config.dump(), "config.json");
    check::Findings findings{check::Profile("")};
    check::check_model({tensors, read, "config.json"}, findings);
    check::check_quantised({tensors, read, "config.json"}, findings);
    return std::ranges::count(findings.all(), check::Severity::kError, &check::Finding::severity);
  };
  CHECK(errors("aqlm") == 0);
  CHECK(errors("fbgemm_fp8") > 0);
}

TEST_CASE("numbers of layers that are written in another way are no layers") {
  const mapping::Fixture& fixture = mapping::fixture("llama");
  std::vector<TensorSpec> tensors = fixture.tensors;
  for (const char* name : {"model.layers.00.a.weight", "model.layers.01.a.weight",
                           "model.layers.-1.a.weight", "model.layers..a.weight"})
    tensors.push_back({name, Dtype::kF32, {1}});
  check::Findings findings{check::Profile("")};
  check::check_model({tensors, fixture.config, "config.json"}, findings);
  CHECK(findings.all().empty());
}

TEST_CASE("a config of another model is found in families that are Llama but for a few ops") {
  for (const char* family : {"smollm3", "seed_oss", "ernie4_5", "exaone4", "hunyuan_v1_dense"}) {
    CAPTURE(family);
    const mapping::Fixture& fixture = mapping::fixture(family);
    for (const auto& [key, rule] :
         {std::pair("vocab_size", check::CheckRule::kVocabSize),
          std::pair("hidden_size", check::CheckRule::kHiddenSize),
          std::pair("num_key_value_heads", check::CheckRule::kHeads),
          std::pair("intermediate_size", check::CheckRule::kIntermediateSize)}) {
      CAPTURE(key);
      auto config = nlohmann::json::parse(fixture.config_text);
      config[key] = config.at(key).get<i64>() * 2;
      const auto changed = mapping::parse_config(config.dump(), "config.json");
      check::Findings findings{check::Profile("")};
      check::check_model({fixture.tensors, changed, "config.json"}, findings);
      CHECK(std::any_of(findings.all().begin(), findings.all().end(),
                        [&](const check::Finding& finding) { return finding.rule == rule; }));
    }
  }
}

/// Returns the keys of config.json that the shapes of a model's tensors depend on.
std::set<std::string> size_keys(const mapping::Fixture& fixture, std::string& prefix) {
  std::string why_not;
  const auto graph = model::find_graph(fixture.config, why_not);
  if (graph == nullptr) return {};
  const auto bound =
      model::bind_model(graph, fixture.config, fixture.tensors, model::Misfits::kLeaveOut);
  prefix = graph->config_part.empty() ? "" : graph->config_part + "/";
  std::set<std::string> keys;
  for (const model::Layer& layer : bound.layers) {
    for (const ops::BoundOp& op : layer.ops) {
      for (size_t w = 0; w < op.weights.size(); ++w) {
        if (op.weights[w].empty()) continue;
        const auto& refs = op.form != nullptr ? op.form->weights : op.op->weights;
        for (const auto& dim : refs[w].shape) {
          for (std::string& key : model::config_keys(*graph, dim)) keys.insert(std::move(key));
        }
      }
    }
  }
  return keys;
}

TEST_CASE("a wrong size in config.json is found in every family") {
  int changed = 0;
  for (const mapping::Fixture& fixture : mapping::fixtures()) {
    std::string prefix;
    for (std::string key : size_keys(fixture, prefix)) {
      std::replace(key.begin(), key.end(), '.', '/');
      auto config = nlohmann::json::parse(fixture.config_text);
      const nlohmann::json::json_pointer path("/" + prefix + key);
      if (!config.contains(path) || !config.at(path).is_number_integer()) continue;
      config.at(path) = config.at(path).get<i64>() * 2 + 2;
      // The table of words' experts holds integers, which are not compared.
      if (key == "num_experts_per_tok") continue;
      const mapping::ModelConfig changed_config(std::make_shared<nlohmann::json>(config),
                                                "config.json");
      std::string why_not;
      if (model::find_graph(changed_config, why_not) == nullptr) continue;
      check::Findings findings{check::Profile("")};
      check::check_model({fixture.tensors, changed_config, "config.json"}, findings);
      CAPTURE(fixture.family);
      CAPTURE(key);
      CHECK(!findings.all().empty());
      ++changed;
    }
  }
  CHECK(changed > 1000);
}

}  // namespace
}  // namespace shardtool::test
