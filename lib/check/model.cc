#include "lib/check/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "lib/base/checked.h"
#include "lib/base/text.h"
#include "lib/mapping/document/config_number.h"
#include "lib/mapping/resolve/missing_numbers.h"

namespace shardtool::check {
namespace {

using shardtool::to_string;

/// Models with projections of [heads * head_dim, hidden], an embedding of [vocab, hidden] and an
/// MLP of [intermediate_size, hidden].
constexpr auto kPlainModels = std::to_array<std::string_view>(
    {"llama",   "mistral", "mixtral",  "qwen2",    "qwen2_moe",  "qwen3",           "qwen3_moe",
     "gemma",   "gemma2",  "olmo",     "olmo2",    "starcoder2", "cohere",          "stablelm",
     "granite", "smollm3", "seed_oss", "ernie4_5", "exaone4",    "hunyuan_v1_dense"});

/// Name prefixes of the numbered layers of a language model.
constexpr auto kLayerPrefixes = std::to_array<std::string_view>(
    {"model.layers.", "layers.", "transformer.h.", "h.", "gpt_neox.layers.",
     "model.language_model.layers.", "language_model.model.layers.", "transformer.layers."});

bool is_plain(const mapping::ModelConfig& config) {
  const std::string type = config.model_type();
  return std::find(kPlainModels.begin(), kPlainModels.end(), type) != kPlainModels.end();
}

/// Map from names to tensors, without copies.
class Tensors {
 public:
  explicit Tensors(std::span<const TensorSpec> tensors) {
    for (const TensorSpec& tensor : tensors) by_name_.emplace(tensor.name, &tensor);
  }
  const TensorSpec* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  /// First of the names that exists, or null.
  const TensorSpec* any(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      if (const TensorSpec* tensor = find(name)) return tensor;
    }
    return nullptr;
  }

 private:
  std::map<std::string_view, const TensorSpec*> by_name_;
};

/// True if one element is one weight: packed ones have other shapes.
bool is_plain_matrix(const TensorSpec& tensor) {
  constexpr int kBitsOfByte = 8;
  const DtypeInfo& info = dtype_info(tensor.dtype);
  return tensor.shape.size() == 2 && info.kind == DtypeKind::kFloat && info.bits >= kBitsOfByte;
}

const TensorSpec* embedding(const Tensors& tensors) {
  return tensors.any({"model.embed_tokens.weight", "embed_tokens.weight",
                      "model.language_model.embed_tokens.weight",
                      "language_model.model.embed_tokens.weight"});
}

/// Reports an axis of a tensor that has another size than config.json implies.
void expect_size(const Model& model, const TensorSpec& tensor, size_t axis, i64 expected, Rule rule,
                 const std::string& why, Findings& findings) {
  if (axis >= tensor.shape.size() || tensor.shape[axis] == expected) return;
  findings.add(
      {.rule = rule,
       .message = fmt::format("axis {} does not have the size that config.json gives", axis),
       .file = model.config_file,
       .tensor = tensor.name,
       .axis = static_cast<int>(axis),
       .found = fmt::format("{} in {}", tensor.shape[axis], to_string(tensor.shape)),
       .expected = fmt::format("{} = {}", expected, why),
       .fix = "take config.json and weights from the same model"});
}

/// Widths of the attention projections, in heads.
struct Heads {
  i64 query;
  std::optional<i64> key_value;
  i64 width;
};

/// Models with a default head_dim other than hidden_size / heads.
constexpr auto kOwnHeadDim = std::to_array<std::string_view>(
    {"gemma", "gemma2", "qwen3", "qwen3_moe", "seed_oss", "ernie4_5"});

std::optional<Heads> heads_of(const mapping::ModelConfig& config) {
  const auto query = config_integer(config, {"num_attention_heads"});
  const auto hidden = config_integer(config, {"hidden_size"});
  if (!query || *query <= 0 || !hidden) return std::nullopt;
  const auto width = config_integer(config, {"head_dim"});
  const std::string type = config.model_type();
  const bool own = std::find(kOwnHeadDim.begin(), kOwnHeadDim.end(), type) != kOwnHeadDim.end();
  if (!width && own) return std::nullopt;
  return Heads{*query, config_integer(config, {"num_key_value_heads"}),
               width.value_or(*hidden / *query)};
}

void check_sizes(const Model& model, Findings& findings) {
  const auto heads = heads_of(model.config);
  const auto hidden = config_integer(model.config, {"hidden_size"});
  const auto inner = config_integer(model.config, {"intermediate_size"});
  for (const TensorSpec& tensor : model.tensors) {
    const std::string_view name = tensor.name;
    if (!is_plain_matrix(tensor) || !name.ends_with("_proj.weight")) continue;
    const auto expect_heads = [&](i64 count, std::string_view key) {
      constexpr i64 kMost = std::numeric_limits<i64>::max();
      const i64 expected = checked_mul(count, heads->width).value_or(kMost);
      expect_size(model, tensor, 0, expected, Rule::kHeads,
                  fmt::format("{} {} x head_dim {}", key, count, heads->width), findings);
    };
    if (heads && name.ends_with(".self_attn.q_proj.weight")) {
      expect_heads(heads->query, "num_attention_heads");
    } else if (heads && heads->key_value &&
               (name.ends_with(".self_attn.k_proj.weight") ||
                name.ends_with(".self_attn.v_proj.weight"))) {
      expect_heads(*heads->key_value, "num_key_value_heads");
    } else if (inner &&
               (name.ends_with(".mlp.gate_proj.weight") || name.ends_with(".mlp.up_proj.weight"))) {
      expect_size(model, tensor, 0, *inner, Rule::kIntermediateSize, "intermediate_size", findings);
    } else if (inner && name.ends_with(".mlp.down_proj.weight")) {
      expect_size(model, tensor, 1, *inner, Rule::kIntermediateSize, "intermediate_size", findings);
    }
    const bool reads_hidden = name.ends_with(".q_proj.weight") || name.ends_with(".k_proj.weight");
    if (hidden && reads_hidden) {
      expect_size(model, tensor, 1, *hidden, Rule::kHiddenSize, "hidden_size", findings);
    }
  }
}

void check_vocabulary(const Model& model, const Tensors& tensors, Findings& findings) {
  const auto vocab = config_integer(model.config, {"vocab_size"});
  const TensorSpec* const table = embedding(tensors);
  if (!vocab || table == nullptr || !is_plain_matrix(*table)) return;
  if (const auto hidden = config_integer(model.config, {"hidden_size"})) {
    expect_size(model, *table, 1, *hidden, Rule::kHiddenSize, "hidden_size", findings);
  }
  if (table->shape[0] < *vocab) {
    expect_size(model, *table, 0, *vocab, Rule::kVocabSize, "vocab_size", findings);
  } else if (table->shape[0] > *vocab) {
    findings.add({.rule = Rule::kVocabPadding,
                  .message = fmt::format("rows beyond vocab_size: {}", table->shape[0] - *vocab),
                  .file = model.config_file,
                  .tensor = table->name,
                  .axis = 0,
                  .found = std::to_string(table->shape[0]),
                  .expected = fmt::format("{} = vocab_size", *vocab)});
  }
}

void check_tied(const Model& model, const Tensors& tensors, Findings& findings) {
  const nlohmann::json* const tie = model.config.find("tie_word_embeddings");
  const TensorSpec* const table = embedding(tensors);
  if (tie == nullptr || !tie->is_boolean() || table == nullptr) return;
  const TensorSpec* const head =
      tensors.any({"lm_head.weight", "language_model.lm_head.weight", "head.weight"});
  const auto architectures = model.config.architectures();
  const bool generates = !architectures.empty() && architectures[0].ends_with("ForCausalLM");
  if (tie->get<bool>() && head != nullptr) {
    findings.add({.rule = Rule::kTiedTwice,
                  .message = fmt::format("stored beside '{}', although tie_word_embeddings is true",
                                         table->name),
                  .file = model.config_file,
                  .tensor = head->name,
                  .fix = "drop one of the two, or say \"tie_word_embeddings\": false"});
  }
  if (!tie->get<bool>() && head == nullptr && generates) {
    findings.add({.rule = Rule::kHeadMissing,
                  .message = "tie_word_embeddings is false, but there is no lm_head.weight",
                  .file = model.config_file,
                  .tensor = "lm_head.weight",
                  .fix = "fetch the missing file, or say \"tie_word_embeddings\": true"});
  }
}

/// Splits "model.layers.12.mlp.up_proj.weight" at "model.layers." into 12 and "mlp.up_proj.weight".
std::optional<std::pair<i64, std::string_view>> numbered(std::string_view name,
                                                         std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  i64 number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  return std::pair(number, name.substr(static_cast<size_t>(end - name.data()) + 1));
}

/// Tensors of every layer, by the name after the layer's number.
using Layers = std::map<i64, std::set<std::string_view>>;

struct NumberedLayers {
  std::string_view prefix;
  Layers layers;
};

NumberedLayers layers_of(const Model& model) {
  NumberedLayers best;
  for (const std::string_view prefix : kLayerPrefixes) {
    Layers layers;
    for (const TensorSpec& tensor : model.tensors) {
      if (const auto found = numbered(tensor.name, prefix))
        layers[found->first].insert(found->second);
    }
    if (layers.size() > best.layers.size()) best = {prefix, std::move(layers)};
  }
  return best;
}

void check_layer_count(const Model& model, const NumberedLayers& found, Findings& findings) {
  const auto count = config_integer(model.config, {"num_hidden_layers", "n_layer", "num_layers"});
  if (!count || found.layers.empty()) return;
  const i64 more = config_integer(model.config, {"num_nextn_predict_layers"}).value_or(0);
  const i64 end = checked_add(*count, more).value_or(*count);
  std::set<i64> layers;
  for (const auto& [layer, tensors] : found.layers) layers.insert(layer);
  const auto missing = mapping::missing_numbers(layers, *count);
  if (!missing.empty()) {
    findings.add({.rule = Rule::kMissingLayer,
                  .message = fmt::format("there is no tensor of layer {}", to_string(missing)),
                  .file = model.config_file,
                  .tensor = fmt::format("{}{}", found.prefix, missing.first.front()),
                  .found = plural(std::ssize(layers), "layer"),
                  .expected = fmt::format("{} = num_hidden_layers", *count),
                  .fix = "fetch the missing files, or correct num_hidden_layers"});
  }
  for (const i64 layer : layers) {
    if (layer < end) continue;
    findings.add({.rule = Rule::kExtraLayer,
                  .message = fmt::format("layer {} is beyond num_hidden_layers", layer),
                  .file = model.config_file,
                  .tensor = fmt::format("{}{}", found.prefix, layer),
                  .expected = fmt::format("layers 0 to {}", *count - 1)});
  }
}

/// Most common set of tensors among the layers; the largest of equally common sets.
const std::set<std::string_view>* usual_tensors(const Layers& layers) {
  std::map<std::set<std::string_view>, i64> counts;
  for (const auto& [layer, tensors] : layers) ++counts[tensors];
  const auto rank = [](const auto& entry) { return std::pair(entry.second, entry.first.size()); };
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  for (const auto& [layer, tensors] : layers) {
    if (tensors == most->first) return &tensors;
  }
  return nullptr;
}

/// Drops layers beyond the count of config.json, which predict further tokens and differ in kind.
void drop_extra_layers(const Model& model, NumberedLayers& found) {
  const auto count = config_integer(model.config, {"num_hidden_layers", "n_layer", "num_layers"});
  if (count) found.layers.erase(found.layers.lower_bound(*count), found.layers.end());
}

/// True for a key or value tensor in one of the last layers that reuse keys and values of an
/// earlier layer.
bool is_anothers(const Model& model, i64 layer, std::string_view name) {
  const auto count = config_integer(model.config, {"num_hidden_layers"});
  const auto shared = config_integer(model.config, {"num_kv_shared_layers"});
  const bool makes_keys = name.starts_with("self_attn.k_") || name.starts_with("self_attn.v_");
  return makes_keys && count && shared && layer >= *count - *shared;
}

/// Kinds of the layer in config.json's lists of layers, as JSON texts.
std::string kind_of(const Model& model, i64 layer) {
  std::string kind;
  for (const char* list : {"layer_types", "mlp_layer_types", "compress_ratios"}) {
    for (const char* root : {"", "text_config."}) {
      kind += mapping::said_at(fmt::format("{}{}[{}]", root, list, layer), model.config) + ' ';
    }
  }
  return kind;
}

/// Groups layers by their kind in config.json: other kinds may have other tensors.
std::vector<Layers> by_kind(const Model& model, const Layers& layers) {
  std::map<std::string, Layers> kinds;
  for (const auto& [layer, tensors] : layers) kinds[kind_of(model, layer)][layer] = tensors;
  std::vector<Layers> found;
  for (auto& [kind, of_kind] : kinds) found.push_back(std::move(of_kind));
  return found;
}

void check_layers_alike(const Model& model, std::string_view prefix, const Layers& layers,
                        Findings& findings) {
  if (layers.size() < 2) return;
  const auto& usual = *usual_tensors(layers);
  for (const auto& [layer, tensors] : layers) {
    // A layer of another kind has tensors of its own; a layer with a proper subset lost some.
    if (tensors.size() >= usual.size()) continue;
    if (!std::includes(usual.begin(), usual.end(), tensors.begin(), tensors.end())) continue;
    for (const std::string_view name : usual) {
      if (tensors.contains(name) || is_anothers(model, layer, name)) continue;
      findings.add({.rule = Rule::kLayerTensor,
                    .message = fmt::format("layer {} lacks a tensor that other layers have", layer),
                    .file = model.config_file,
                    .tensor = fmt::format("{}{}.{}", prefix, layer, name),
                    .fix = "fetch the missing files"});
    }
  }
}

void check_experts(const Model& model, const NumberedLayers& found, Findings& findings) {
  const auto count =
      config_integer(model.config, {"n_routed_experts", "num_local_experts", "num_experts"});
  if (!count) return;
  constexpr std::string_view kExperts = "experts.";
  for (const auto& [layer, tensors] : found.layers) {
    std::map<std::string_view, std::set<i64>> experts;  // by the name before the number
    for (const std::string_view name : tensors) {
      const size_t at = name.find(kExperts);
      if (at == name.npos || (at > 0 && name[at - 1] != '.')) continue;
      const std::string_view prefix = name.substr(0, at + kExperts.size());
      if (const auto expert = numbered(name, prefix)) experts[prefix].insert(expert->first);
    }
    for (const auto& [prefix, numbers] : experts) {
      const auto missing = mapping::missing_numbers(numbers, *count);
      if (missing.empty()) continue;
      findings.add(
          {.rule = Rule::kMissingExpert,
           .message = fmt::format("layer {} has no expert {}", layer, to_string(missing)),
           .file = model.config_file,
           .tensor = fmt::format("{}{}.{}{}", found.prefix, layer, prefix, missing.first.front()),
           .found = plural(std::ssize(numbers), "expert"),
           .expected = fmt::format("{} experts", *count),
           .fix = "fetch the missing files, or correct the number of experts"});
    }
  }
}

}  // namespace

std::optional<i64> config_integer(const mapping::ModelConfig& config,
                                  std::initializer_list<std::string_view> paths) {
  for (const std::string_view path : paths) {
    for (const std::string& place : {std::string(path), fmt::format("text_config.{}", path)}) {
      const nlohmann::json* const value = config.find(place);
      if (value == nullptr || !value->is_number_integer()) continue;
      const i64 number = value->get<i64>();
      return number < 0 ? std::nullopt : std::optional(number);
    }
  }
  return std::nullopt;
}

void check_model(const Model& model, Findings& findings) {
  const Tensors tensors(model.tensors);
  if (is_plain(model.config)) check_sizes(model, findings);
  if (is_plain(model.config)) check_vocabulary(model, tensors, findings);
  check_tied(model, tensors, findings);
  NumberedLayers layers = layers_of(model);
  check_layer_count(model, layers, findings);
  check_experts(model, layers, findings);
  drop_extra_layers(model, layers);
  for (const Layers& alike : by_kind(model, layers.layers))
    check_layers_alike(model, layers.prefix, alike, findings);
}

}  // namespace shardtool::check
