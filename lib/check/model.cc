#include "lib/check/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "lib/base/checked.h"
#include "lib/base/text.h"
#include "lib/mapping/document/config_number.h"
#include "lib/mapping/resolve/missing_numbers.h"
#include "lib/model/bind.h"
#include "lib/model/graph/graph_list.h"
#include "lib/model/missing_tensors.h"
#include "lib/model/packed_format.h"

namespace shardtool::check {
namespace {

using shardtool::to_string;

/// Name prefixes of the numbered layers of a language model.
constexpr auto kLayerPrefixes = std::to_array<std::string_view>(
    {"model.layers.", "layers.", "transformer.h.", "h.", "gpt_neox.layers.",
     "model.language_model.layers.", "language_model.model.layers.", "transformer.layers."});

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

const TensorSpec* embedding(const Tensors& tensors) {
  return tensors.any({"model.embed_tokens.weight", "embed_tokens.weight",
                      "model.language_model.embed_tokens.weight",
                      "language_model.model.embed_tokens.weight"});
}

/// The rule about a size of config.json, for the keys that most models have.
struct KeyRule {
  std::string_view key;
  CheckRule rule;
};
/// In the order in which they decide: head_dim may be hidden_size / num_attention_heads.
constexpr auto kKeyRules = std::to_array<KeyRule>({
    {"vocab_size", CheckRule::kVocabSize},
    {"num_attention_heads", CheckRule::kHeads},
    {"num_key_value_heads", CheckRule::kHeads},
    {"n_head", CheckRule::kHeads},
    {"intermediate_size", CheckRule::kIntermediateSize},
    {"hidden_size", CheckRule::kHiddenSize},
    {"n_embd", CheckRule::kHiddenSize},
    {"d_model", CheckRule::kHiddenSize},
});

CheckRule rule_of(const std::vector<std::string>& keys) {
  for (const auto& [key, rule] : kKeyRules) {
    if (std::ranges::find(keys, key) != keys.end()) return rule;
  }
  return CheckRule::kSize;
}

/// Returns "heads*head_dim (num_attention_heads 32, hidden_size 4096)", or the key whose value the
/// size is.
std::string reason_of(const model::Misfit& misfit, const std::vector<std::string>& keys,
                      const mapping::ModelConfig& config) {
  if (keys.size() == 1 && config_integer(config, {keys[0]}) == misfit.expected) return keys[0];
  const std::string& dim = misfit.dim->text;
  std::vector<std::string> values;
  for (const std::string& key : keys) {
    if (const auto value = config_integer(config, {key}))
      values.push_back(fmt::format("{} {}", key, *value));
  }
  if (values.empty()) return dim;
  return fmt::format("{} ({})", dim, fmt::join(values, ", "));
}

void report(const CheckedModel& model, const model::Model& bound, const model::Misfit& misfit,
            Findings& findings) {
  const TensorSpec& tensor = model.tensors[misfit.tensor];
  const i64 found = tensor.shape[misfit.axis];
  const auto keys = model::config_keys(*bound.graph, *misfit.dim);
  Finding finding{.rule = rule_of(keys),
                  .message = "",
                  .file = model.config_file,
                  .tensor = tensor.name,
                  .axis = static_cast<int>(misfit.axis)};
  if (finding.rule == CheckRule::kVocabSize && found > misfit.expected) {
    finding.rule = CheckRule::kVocabPadding;
    finding.message = fmt::format("rows beyond vocab_size: {}", found - misfit.expected);
    finding.found = std::to_string(found);
    finding.expected = fmt::format("{} = vocab_size", misfit.expected);
  } else {
    finding.message =
        fmt::format("axis {} does not have the size that config.json gives", misfit.axis);
    finding.found = fmt::format("{} in {}", found, to_string(tensor.shape));
    finding.expected =
        fmt::format("{} = {}", misfit.expected, reason_of(misfit, keys, bound.config));
    finding.fix = "take config.json and weights from the same model";
  }
  findings.add(std::move(finding));
}

/// Reports a size of config.json that is no positive integer, each once.
void report_unusable(const CheckedModel& model, const Error& error, Findings& findings) {
  Finding finding = finding_of(CheckRule::kConfigInvalid, error, model.config_file);
  finding.fix = "take config.json and weights from the same model";
  const bool is_known = std::ranges::any_of(findings.all(), [&](const Finding& other) {
    return other.rule == finding.rule && other.file == finding.file &&
           other.message == finding.message;
  });
  if (!is_known) findings.add(std::move(finding));
}

/// Binds the model's graph, if it has one. Reports sizes of config.json that contradict each other,
/// such as a hidden_size that is no multiple of the number of heads, and those that decide which
/// tensors the graph reads and are no positive integer. Absent if one of these, or no number at
/// all, is there.
std::optional<model::Model> bound_model(const CheckedModel& model, Findings& findings) {
  std::string why_not;
  const auto graph = model::find_graph(model.config, why_not);
  if (graph == nullptr) return std::nullopt;
  bool is_consistent = false;
  try {
    static_cast<void>(model::sizes_of(*graph, model.config));
    is_consistent = true;
    return model::bind_model(graph, model.config, model.tensors, model::Misfits::kLeaveOut);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kSizeExpression) return std::nullopt;
    if (is_consistent) {
      report_unusable(model, error, findings);
      return std::nullopt;
    }
    findings.add({.rule = CheckRule::kSize,
                  .message = error.message(),
                  .file = model.config_file,
                  .fix = "take config.json and weights from the same model"});
    return std::nullopt;
  }
}

void check_tied(const CheckedModel& model, const Tensors& tensors, Findings& findings) {
  const nlohmann::json* const tie = model.config.find("tie_word_embeddings");
  const TensorSpec* const table = embedding(tensors);
  if (tie == nullptr || !tie->is_boolean() || table == nullptr) return;
  const TensorSpec* const head =
      tensors.any({"lm_head.weight", "language_model.lm_head.weight", "head.weight"});
  const auto architectures = model.config.architectures();
  const bool generates = !architectures.empty() && architectures[0].ends_with("ForCausalLM");
  if (tie->get<bool>() && head != nullptr) {
    findings.add({.rule = CheckRule::kTiedTwice,
                  .message = fmt::format("stored beside '{}', although tie_word_embeddings is true",
                                         table->name),
                  .file = model.config_file,
                  .tensor = head->name,
                  .fix = "drop one of the two, or say \"tie_word_embeddings\": false"});
  }
  if (!tie->get<bool>() && head == nullptr && generates) {
    findings.add({.rule = CheckRule::kHeadMissing,
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

std::optional<i64> layer_count(const CheckedModel& model) {
  return config_integer(model.config, {"num_hidden_layers", "n_layer", "num_layers"});
}

NumberedLayers layers_of(const CheckedModel& model) {
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

void check_layer_count(const CheckedModel& model, const NumberedLayers& found, Findings& findings) {
  const auto count = layer_count(model);
  if (!count || found.layers.empty()) return;
  if (*count == 0) {
    return report_unusable(model,
                           Error(ErrorCode::kSizeExpression,
                                 fmt::format("'num_hidden_layers' in {} is not a positive integer",
                                             model.config.file()))
                               .note("found", "0")
                               .note("expected", "an integer of 1 or more"),
                           findings);
  }
  const i64 more = config_integer(model.config, {"num_nextn_predict_layers"}).value_or(0);
  const i64 end = checked_add(*count, more).value_or(*count);
  std::set<i64> layers;
  for (const auto& [layer, tensors] : found.layers) layers.insert(layer);
  const auto missing = mapping::missing_numbers(layers, *count);
  if (!missing.empty()) {
    findings.add({.rule = CheckRule::kMissingLayer,
                  .message = fmt::format("there is no tensor of layer {}", to_string(missing)),
                  .file = model.config_file,
                  .tensor = fmt::format("{}{}", found.prefix, missing.first.front()),
                  .found = plural(std::ssize(layers), "layer"),
                  .expected = fmt::format("{} = num_hidden_layers", *count),
                  .fix = "fetch the missing files, or correct num_hidden_layers"});
  }
  for (const i64 layer : layers) {
    if (layer < end) continue;
    findings.add({.rule = CheckRule::kExtraLayer,
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
void drop_extra_layers(const CheckedModel& model, NumberedLayers& found) {
  const auto count = layer_count(model);
  if (count) found.layers.erase(found.layers.lower_bound(*count), found.layers.end());
}

/// True for a key or value tensor in one of the last layers that reuse keys and values of an
/// earlier layer.
bool is_anothers(const CheckedModel& model, i64 layer, std::string_view name) {
  const auto count = config_integer(model.config, {"num_hidden_layers"});
  const auto shared = config_integer(model.config, {"num_kv_shared_layers"});
  const bool makes_keys = name.starts_with("self_attn.k_") || name.starts_with("self_attn.v_");
  return makes_keys && count && shared && layer >= *count - *shared;
}

/// Kinds of the layer in config.json's lists of layers, as JSON texts.
std::string kind_of(const CheckedModel& model, i64 layer) {
  std::string kind;
  for (const char* list : {"layer_types", "mlp_layer_types", "compress_ratios"}) {
    for (const char* root : {"", "text_config."}) {
      kind += mapping::said_at(fmt::format("{}{}[{}]", root, list, layer), model.config) + ' ';
    }
  }
  return kind;
}

/// Groups layers by their kind in config.json: other kinds may have other tensors.
std::vector<Layers> by_kind(const CheckedModel& model, const Layers& layers) {
  std::map<std::string, Layers> kinds;
  for (const auto& [layer, tensors] : layers) kinds[kind_of(model, layer)][layer] = tensors;
  std::vector<Layers> found;
  for (auto& [kind, of_kind] : kinds) found.push_back(std::move(of_kind));
  return found;
}

/// Reports tensors that a layer lacks and others have, except those that are known to be missing.
void check_layers_alike(const CheckedModel& model, std::string_view prefix, const Layers& layers,
                        const std::set<std::string>& known, Findings& findings) {
  if (layers.size() < 2) return;
  const auto& usual = *usual_tensors(layers);
  for (const auto& [layer, tensors] : layers) {
    // A layer of another kind has tensors of its own; a layer with a proper subset lost some.
    if (tensors.size() >= usual.size()) continue;
    if (!std::includes(usual.begin(), usual.end(), tensors.begin(), tensors.end())) continue;
    for (const std::string_view name : usual) {
      if (tensors.contains(name) || is_anothers(model, layer, name)) continue;
      if (known.contains(fmt::format("{}{}.{}", prefix, layer, name))) continue;
      findings.add({.rule = CheckRule::kLayerTensor,
                    .message = fmt::format("layer {} lacks a tensor that other layers have", layer),
                    .file = model.config_file,
                    .tensor = fmt::format("{}{}.{}", prefix, layer, name),
                    .fix = "fetch the missing files, unless the model's code leaves the tensor out "
                           "of this layer"});
    }
  }
}

void check_experts(const CheckedModel& model, const NumberedLayers& found, Findings& findings) {
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
          {.rule = CheckRule::kMissingExpert,
           .message = fmt::format("layer {} has no expert {}", layer, to_string(missing)),
           .file = model.config_file,
           .tensor = fmt::format("{}{}.{}{}", found.prefix, layer, prefix, missing.first.front()),
           .found = plural(std::ssize(numbers), "expert"),
           .expected = fmt::format("{} experts", *count),
           .fix = "fetch the missing files, or correct the number of experts"});
    }
  }
}

bool is_embedding(const model::Misfit& misfit) {
  return std::holds_alternative<ops::Embed>(misfit.reader->kind);
}

/// True if a finding about the model says that tensors are missing.
bool is_lack_known(const Findings& findings) {
  return std::ranges::any_of(findings.all(), [](const Finding& finding) {
    return std::ranges::find(kAbsenceRules, finding.rule) != kAbsenceRules.end();
  });
}

/// Reports the tensors that the graph needs and the model lacks, unless rules that know more of
/// them did, and returns their names. Weights that are packed have other names.
std::set<std::string> check_needed(const CheckedModel& model, const model::Model& bound,
                                   Findings& findings) {
  if (is_lack_known(findings) || !model::packed_weights(model.config, model.tensors).empty())
    return {};
  auto missing = model::missing_tensors(bound, model.tensors);
  if (missing.count == 0) return {};
  std::string others;
  if (missing.count > 1) others = ", and " + plural(missing.count - 1, "other");
  findings.add({.rule = CheckRule::kTensorMissing,
                .message = "the model needs a tensor that is not there" + others,
                .file = model.config_file,
                .tensor = missing.first,
                .fix = "fetch the missing files, or take config.json and weights from the same "
                       "model"});
  return std::move(missing.names);
}

/// Skips layers that lack tensors, since the graph reads the others as those of another kind of
/// layer. Reports a vocabulary of another size for the embedding, and for the output matrix only
/// if the embedding fits.
void check_sizes(const CheckedModel& model, const model::Model& bound,
                 std::string_view layer_prefix, const std::set<std::string>& missing,
                 Findings& findings) {
  std::set<i64> incomplete;
  const auto lacks = [&](const std::string& name) {
    if (const auto place = numbered(name, layer_prefix)) incomplete.insert(place->first);
  };
  for (const std::string& name : missing) lacks(name);
  for (const Finding& finding : findings.all()) {
    if (finding.rule == CheckRule::kLayerTensor) lacks(finding.tensor);
  }
  const bool is_table_reported = std::ranges::any_of(
      bound.misfits, [](const auto& misfit) { return !misfit.unusable && is_embedding(misfit); });
  for (const model::Misfit& misfit : bound.misfits) {
    if (misfit.unusable) {
      report_unusable(model, *misfit.unusable, findings);
      continue;
    }
    const auto place = numbered(model.tensors[misfit.tensor].name, layer_prefix);
    if (place && incomplete.contains(place->first)) continue;
    const bool is_repeated = is_table_reported && misfit.reader->is_head && !is_embedding(misfit);
    if (!is_repeated) report(model, bound, misfit, findings);
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

void check_model(const CheckedModel& model, Findings& findings) {
  const Tensors tensors(model.tensors);
  check_tied(model, tensors, findings);
  NumberedLayers layers = layers_of(model);
  check_layer_count(model, layers, findings);
  check_experts(model, layers, findings);
  drop_extra_layers(model, layers);
  const auto bound = bound_model(model, findings);
  std::set<std::string> missing;
  if (bound) missing = check_needed(model, *bound, findings);
  for (const Layers& alike : by_kind(model, layers.layers))
    check_layers_alike(model, layers.prefix, alike, missing, findings);
  if (bound) check_sizes(model, *bound, layers.prefix, missing, findings);
}

}  // namespace shardtool::check
