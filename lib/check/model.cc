#include "lib/check/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "lib/base/checked.h"
#include "lib/base/text.h"
#include "lib/check/layers.h"
#include "lib/mapping/match/unmatched_names.h"
#include "lib/mapping/presets.h"
#include "lib/mapping/quantization.h"
#include "lib/mapping/resolve/missing_numbers.h"
#include "lib/model/bind.h"
#include "lib/model/graph/graph_list.h"
#include "lib/model/packed_format.h"

namespace shardtool::check {
namespace {

using shardtool::to_string;

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
std::optional<model::Model> bound_model(const CheckedModel& model, model::MissingTensors& missing,
                                        Findings& findings) {
  std::string why_not;
  const auto graph = model::find_graph(model.config, why_not);
  if (graph == nullptr) return std::nullopt;
  bool is_consistent = false;
  try {
    static_cast<void>(model::sizes_of(*graph, model.config));
    is_consistent = true;
    return model::bind_model(graph, model.config, model.tensors, model::Misfits::kLeaveOut,
                             &missing);
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

/// True if the model has an output matrix after its last layer, in whatever form it is stored.
bool has_head(const CheckedModel& model) {
  return std::ranges::any_of(model.tensors, [](const TensorSpec& tensor) {
    const std::string_view name = tensor.name;
    return name.starts_with("lm_head.") || name.starts_with("language_model.lm_head.") ||
           name.starts_with("head.");
  });
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
  if (!tie->get<bool>() && !has_head(model) && generates) {
    findings.add({.rule = CheckRule::kHeadMissing,
                  .message = "tie_word_embeddings is false, but there is no lm_head.weight",
                  .file = model.config_file,
                  .tensor = "lm_head.weight",
                  .fix = "fetch the missing file, or say \"tie_word_embeddings\": true"});
  }
}

std::optional<i64> layer_count(const CheckedModel& model) {
  return config_integer(model.config, {"num_hidden_layers", "n_layer", "num_layers"});
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

/// Drops layers beyond the count of config.json, which predict further tokens and differ in kind.
void drop_extra_layers(const CheckedModel& model, NumberedLayers& found) {
  const auto count = layer_count(model);
  if (count) found.layers.erase(found.layers.lower_bound(*count), found.layers.end());
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

/// True if the model has packed weights, be it in a form that cannot be unpacked.
bool has_packed_weights(const CheckedModel& model) {
  bool is_left_out = false;
  const auto weights = model::packed_weights(
      model.config, model.tensors, [&](const Error&, const std::string&) { is_left_out = true; });
  return is_left_out || !weights.empty();
}

/// Longest run of modules that all names begin with, such as "module."; empty if there is none.
std::string common_modules(std::span<const TensorSpec> tensors) {
  std::string_view common = tensors.empty() ? std::string_view() : tensors.front().name;
  for (const TensorSpec& tensor : tensors) {
    const auto differ = std::ranges::mismatch(common, tensor.name);
    common = common.substr(0, static_cast<size_t>(differ.in1 - common.begin()));
  }
  return std::string(common.substr(0, common.rfind('.') + 1));
}

/// Advice on a model that lacks this tensor of its graph.
std::string advice_on_missing(const CheckedModel& model, const std::string& missing) {
  if (mapping::has_unmerged_adapter(model.tensors)) return std::string(mapping::kMergeAdapter);
  const std::string modules = common_modules(model.tensors);
  const bool is_inside = std::ranges::any_of(model.tensors, [&](const TensorSpec& tensor) {
    return tensor.name.ends_with("." + missing);
  });
  if (modules.empty() || !is_inside)
    return "fetch the missing files, or take config.json and weights from the same model";
  return fmt::format(
      "all names begin with '{0}.', which the model's do not: FOLDER#{0} is the checkpoint "
      "without it",
      quote_for_message(modules.substr(0, modules.size() - 1)));
}

/// Reports the tensors that the graph needs and the model lacks, unless rules that know more of
/// them did, and returns their names. Weights that are packed have other names.
std::set<std::string> check_needed(const CheckedModel& model, model::MissingTensors missing,
                                   Findings& findings) {
  if (missing.count == 0 || is_lack_known(findings) || !has_known_names(model.config) ||
      has_packed_weights(model))
    return {};
  std::string others;
  if (missing.count > 1) others = ", and " + plural(missing.count - 1, "other");
  findings.add({.rule = CheckRule::kTensorMissing,
                .message = "the model needs a tensor that is not there" + others,
                .file = model.config_file,
                .tensor = missing.first,
                .fix = advice_on_missing(model, missing.first)});
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

/// Compares the sizes of packed weights, as the matrices that they hold. Codes that fill up the
/// last word or group are no misfit.
void check_packed_sizes(const CheckedModel& model, std::string_view layer_prefix,
                        const std::set<std::string>& missing, Findings& findings) {
  std::vector<TensorSpec> unpacked(model.tensors.begin(), model.tensors.end());
  std::map<size_t, i64> filled;  // most codes that fill up, by tensor
  const auto leave_out = [](const Error&, const std::string&) {};  // reported by check_quantised()
  for (const model::PackedWeight& weight :
       model::packed_weights(model.config, model.tensors, leave_out)) {
    unpacked[weight.codes] = weight.spec;
    filled[weight.codes] = std::max(weight.per_word, weight.format->group) - 1;
  }
  if (filled.empty()) return;
  const CheckedModel matrices{unpacked, model.config, model.config_file};
  model::MissingTensors needed;
  auto bound = bound_model(matrices, needed, findings);
  if (!bound) return;
  std::erase_if(bound->misfits, [&](const model::Misfit& misfit) {
    const auto packed = filled.find(misfit.tensor);
    if (packed == filled.end()) return true;
    const i64 more = unpacked[misfit.tensor].shape[misfit.axis] - misfit.expected;
    return more > 0 && more <= packed->second;
  });
  check_sizes(matrices, *bound, layer_prefix, missing, findings);
}

}  // namespace

bool has_known_names(const mapping::ModelConfig& config) {
  const auto tag = mapping::quantization_tag(config);
  return !tag || std::ranges::any_of(mapping::quantized_families(), [&](const auto& family) {
    return std::ranges::find(family.quantization, *tag) != family.quantization.end();
  });
}

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
  NumberedLayers layers = counted_layers(model);
  check_layer_count(model, layers, findings);
  check_experts(model, layers, findings);
  drop_extra_layers(model, layers);
  model::MissingTensors needed;
  const auto bound = bound_model(model, needed, findings);
  const auto missing = check_needed(model, std::move(needed), findings);
  check_layers_alike(model, layers, bound ? &*bound : nullptr, missing, findings);
  if (!bound) return;
  check_sizes(model, *bound, layers.prefix, missing, findings);
  check_packed_sizes(model, layers.prefix, missing, findings);
}

}  // namespace shardtool::check
