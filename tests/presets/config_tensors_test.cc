// Tensors that graphs require by config.json alone, compared with those that the transformers
// library saves.
#include "lib/model/config_tensors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/model/bind.h"
#include "lib/model/graph/graph_list.h"
#include "tests/presets/fixture.h"
#include "tests/support/throws.h"

namespace shardtool::model {
namespace {

using mapping::Fixture;
using mapping::fixture;
using mapping::fixtures;

/// Fixtures whose config.json does not say which weights they have, and why.
const std::map<std::string, std::string> kUndecided = {
    {"deberta_v2_classifier", "projections of positions, without share_att_key"},
    {"jamba", "attention in layers that attn_layer_period and attn_layer_offset count"},
    {"jamba_stacked", "the same, with all experts in one tensor"},
    {"marian_two", "two tables of words, with share_encoder_decoder_embeddings false"},
};

/// Fixtures whose names begin otherwise than the first ones of the graph: a model without a head,
/// or the language model of another one.
constexpr std::string_view kOtherBeginnings =
    " "
    "bert_bare bloom_bare distilbert_bare exaone4_5 gemma3 gemma3_held glm4v glm4v_moe "
    "gpt2_bare gptj_bare internvl internvl_qwen3 kimi_k25 kimi_k25_held llama4 "
    "llama4_defaults llama_bare llava llava_mistral llava_mistral_words llava_words mistral3 "
    "mistral3_ministral3 mistral3_mistral4 modernbert_bare qwen2_5_vl qwen2_5_vl_held "
    "qwen2_vl qwen2_vl_defaults qwen2_vl_held qwen3_5 qwen3_5_defaults qwen3_5_moe "
    "qwen3_5_moe_defaults qwen3_vl qwen3_vl_defaults qwen3_vl_moe qwen3_vl_moe_defaults ";

/// Fixtures of which a weight has another name or form than the first one of the graph, beside
/// those with all experts in one tensor ("_stacked").
constexpr std::string_view kOtherForms =
    " "
    "bert deberta_v2 deepseek_v4 granitemoe_swa hy_v4 kimi_linear lfm3_held "
    "megatron_bert mistral4 olmo_hybrid roberta zamba2 ";

bool is_among(const std::string& fixture, std::string_view list) {
  return list.find(" " + fixture + " ") != list.npos;
}

/// Ends of names of tensors that the library keeps in a type of their own.
constexpr std::array kOwnTypes = {"e_score_correction_bias", ".expert_bias", ".mlp.gate.weight",
                                  ".gate.wg.weight",         ".A_log",       ".tid2eid"};

std::shared_ptr<const Graph> graph_of(const Fixture& f) {
  std::string why_not;
  return find_graph(f.config, why_not);
}

/// Returns the fixture's tensors that its graph requires, by name.
std::map<std::string, TensorSpec> required_tensors(const Fixture& f) {
  const Model bound = bind_model(graph_of(f), f.config, f.tensors);
  std::map<std::string, TensorSpec> required;
  for (const Layer& layer : bound.layers) {
    for (const BoundOp& op : layer.ops) {
      const auto& refs = ops::refs_of(op);
      for (size_t w = 0; w < refs.size(); ++w) {
        if (refs[w].optional) continue;
        for (const size_t tensor : op.weights[w])
          required.emplace(f.tensors[tensor].name, f.tensors[tensor]);
      }
    }
  }
  return required;
}

i64 elements_of(const TensorSpec& spec) {
  return element_count(spec.shape).value();
}

/// True for equal shapes, and for two of one number, whose rank differs from model to model.
bool are_alike(const TensorSpec& a, const TensorSpec& b) {
  return a.shape == b.shape || (elements_of(a) == 1 && elements_of(b) == 1);
}

bool has_own_type(const TensorSpec& spec) {
  return std::ranges::any_of(kOwnTypes, [&](const char* end) { return spec.name.ends_with(end); });
}

/// Returns the fixtures that config.json alone decides and that have a graph.
std::vector<const Fixture*> decided() {
  std::vector<const Fixture*> found;
  for (const Fixture& f : fixtures()) {
    if (graph_of(f) != nullptr && !kUndecided.contains(f.family)) found.push_back(&f);
  }
  return found;
}

TEST_CASE("config.json alone says which weights a model has, but for the known families") {
  for (const Fixture& f : fixtures()) {
    const auto graph = graph_of(f);
    if (graph == nullptr) continue;
    CAPTURE(f.family);
    const auto error =
        testing::error_of([&] { return config_tensors(*graph, f.config, Dtype::kBF16); });
    CHECK(error.has_value() == kUndecided.contains(f.family));
    if (error) CHECK(error->code() == ErrorCode::kUnsupported);
  }
}

TEST_CASE("the weights by config.json have as many elements as those that the graph requires") {
  for (const Fixture* f : decided()) {
    CAPTURE(f->family);
    i64 derived = 0, required = 0;
    for (const TensorSpec& spec : config_tensors(*graph_of(*f), f->config, Dtype::kBF16))
      derived += elements_of(spec);
    for (const auto& [name, spec] : required_tensors(*f)) required += elements_of(spec);
    CHECK(derived == required);
  }
}

TEST_CASE("the weights by config.json are those that the graph requires, by name, shape and type") {
  for (const Fixture* f : decided()) {
    CAPTURE(f->family);
    const std::map<std::string, TensorSpec> required = required_tensors(*f);
    const auto derived = config_tensors(*graph_of(*f), f->config, Dtype::kBF16);
    const bool are_same =
        derived.size() == required.size() && std::ranges::all_of(derived, [&](const auto& spec) {
          const auto found = required.find(spec.name);
          return found != required.end() && are_alike(spec, found->second) &&
                 (spec.dtype == found->second.dtype || has_own_type(spec));
        });
    const bool is_other = f->family.ends_with("_stacked") ||
                          is_among(f->family, kOtherBeginnings) || is_among(f->family, kOtherForms);
    CHECK(are_same == !is_other);
  }
}

TEST_CASE("a vision encoder is counted where config.json describes one") {
  const auto count = [](const std::string& name) {
    const Fixture& f = fixture(name);
    const auto specs = config_tensors(*graph_of(f), f.config, Dtype::kBF16);
    return std::ranges::count_if(specs, [](const TensorSpec& spec) {
      return spec.name.find("vision_tower.") != std::string::npos;
    });
  };
  CHECK(count("gemma3") > 0);
  CHECK(count("gemma3_text") == 0);
}

TEST_CASE("the output matrix is counted where config.json says that it is not tied") {
  const Fixture& f = fixture("llama");
  const auto has_head = [&](const char* said) {
    nlohmann::json config = nlohmann::json::parse(f.config_text);
    config.erase("tie_word_embeddings");
    if (said != nullptr) config["tie_word_embeddings"] = nlohmann::json::parse(said);
    const auto parsed = mapping::parse_config(config.dump(), "config.json");
    const auto specs = config_tensors(*graph_of(f), parsed, Dtype::kBF16);
    return std::ranges::count(specs, "lm_head.weight", &TensorSpec::name) == 1;
  };
  CHECK(has_head("false"));
  CHECK_FALSE(has_head("true"));
  CHECK_FALSE(has_head(nullptr));
}

/// True if the output matrix is among the weights that config.json alone gives a model.
bool counts_head(const Graph& graph, const mapping::ModelConfig& config) {
  return std::ranges::any_of(config_tensors(graph, config, Dtype::kBF16), [](const auto& spec) {
    return spec.name.ends_with("lm_head.weight");
  });
}

/// True if a model without an output matrix lacks it by config.json.
bool lacks_head(std::shared_ptr<const Graph> graph, const mapping::ModelConfig& config,
                std::vector<TensorSpec> tensors) {
  std::erase_if(tensors, [](const auto& spec) { return spec.name.ends_with("lm_head.weight"); });
  MissingTensors missing;
  bind_model(std::move(graph), config, tensors, Misfits::kLeaveOut, &missing);
  return std::ranges::any_of(
      missing.names, [](const std::string& name) { return name.ends_with("lm_head.weight"); });
}

TEST_CASE("an unclear output matrix is counted by config.json alone, and not missed") {
  const Fixture& f = fixture("llava");
  for (const std::string_view outer : {"null", "true", "false"}) {
    for (const std::string_view inner : {"null", "true", "false"}) {
      CAPTURE(outer);
      CAPTURE(inner);
      nlohmann::json config = nlohmann::json::parse(f.config_text);
      config["tie_word_embeddings"] = nlohmann::json::parse(outer);
      config["text_config"]["tie_word_embeddings"] = nlohmann::json::parse(inner);
      const auto parsed = mapping::parse_config(config.dump(), "config.json");
      const bool may_be_own = (outer == "null" ? inner : outer) == "false";
      CHECK(counts_head(*graph_of(f), parsed) == may_be_own);
      CHECK(lacks_head(graph_of(f), parsed, f.tensors) == (may_be_own && inner != "true"));
    }
  }
}

TEST_CASE("numbers that no model has are refused before their tensors are listed") {
  const Fixture& f = fixture("mixtral");
  nlohmann::json config = nlohmann::json::parse(f.config_text);
  config["num_hidden_layers"] = 60'000;
  config["num_local_experts"] = 60'000;
  const auto parsed = mapping::parse_config(config.dump(), "config.json");
  CHECK_ERROR(kLimit, config_tensors(*graph_of(f), parsed, Dtype::kBF16));
}

}  // namespace
}  // namespace shardtool::model
