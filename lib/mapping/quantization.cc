#include "lib/mapping/quantization.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/base/text.h"
#include "lib/mapping/presets.h"

namespace shardtool::mapping {
namespace {

const std::string kRoot = "quantization_config.";

bool is_true(const ModelConfig& config, const std::string& path) {
  const nlohmann::json* value = config.find(path);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

bool is_there(const ModelConfig& config, const std::string& path) {
  const nlohmann::json* value = config.find(path);
  return value != nullptr && !value->is_null();
}

/// True if this group's inputs are ordered by activation, so that the group of every input is
/// stored. The words are those of ActivationOrdering in quant_args.py of compressed-tensors, which
/// reads them in any case; with "weight" and "static", neighbours form a group.
bool has_act_order(const nlohmann::json& group) {
  const auto weights = group.find("weights");
  if (weights == group.end() || !weights->is_object()) return false;
  const auto order = weights->find("actorder");
  if (order == weights->end()) return false;
  if (order->is_boolean()) return order->get<bool>();
  if (!order->is_string()) return false;
  std::string word = order->get<std::string>();
  for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return word == "group" || word == "dynamic";
}

/// Suffix of the tag of packed weights: "/act_order" where all groups have it. No family describes
/// models of which some groups have it.
std::string act_order_suffix(const ModelConfig& config) {
  const nlohmann::json* groups = config.find(kRoot + "config_groups");
  if (groups == nullptr || !groups->is_object() || groups->empty()) return "";
  const auto ordered = std::ranges::count_if(*groups, has_act_order);
  if (ordered == 0) return "";
  return ordered == std::ssize(*groups) ? "/act_order" : "/some_act_order";
}

bool knows(const std::vector<std::string>& tags, const std::string& tag) {
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

Error unknown_family(const std::string& tag, const std::string& said_by) {
  std::vector<std::string> known;
  for (const Preset& preset : quantized_families()) {
    known.insert(known.end(), preset.quantization.begin(), preset.quantization.end());
  }
  return Error(ErrorCode::kUnsupported,
               fmt::format("the weights are stored as '{}', which no family of tensors describes",
                           quote_for_message(tag, 60)))
      .note("said by", said_by)
      .note("known", fmt::format("{}", fmt::join(known, ", ")))
      .help(fmt::format("if your own mapping's rules know these tensors, say so in it: "
                        "\"quantization\": [\"{}\"]",
                        quote_for_message(tag, 60)));
}

}  // namespace

std::optional<std::string> quantization_tag(const ModelConfig& config) {
  const auto method = config.text(kRoot + "quant_method");
  if (!method) return std::nullopt;
  const auto text = [&](const std::string& key, const std::string& otherwise) {
    return config.text(kRoot + key).value_or(otherwise);
  };
  if (*method == "gptq") return is_true(config, kRoot + "desc_act") ? "gptq/desc_act" : "gptq";
  if (*method == "awq") return "awq/" + text("version", "gemm");
  if (*method == "fp8")
    return is_there(config, kRoot + "weight_block_size") ? "fp8/block" : "fp8/tensor";
  if (*method == "compressed-tensors") {
    const std::string format = text("format", "unknown");
    return "compressed-tensors/" + format +
           (format == "pack-quantized" ? act_order_suffix(config) : "");
  }
  if (*method == "modelopt") return "modelopt/" + text("quant_algo", "unknown");
  if (*method == "bitsandbytes")
    return is_true(config, kRoot + "load_in_8bit") ? "bitsandbytes/8bit" : "bitsandbytes/4bit";
  return method;
}

Mapping with_family(const Mapping& mapping, const std::string& tag, const std::string& said_by) {
  const auto documents = mapping.documents();
  if (std::any_of(documents.begin(), documents.end(),
                  [&](const Document& document) { return knows(document.quantization, tag); }))
    return mapping;
  const auto families = quantized_families();
  const auto family = std::find_if(families.begin(), families.end(), [&](const Preset& preset) {
    return knows(preset.quantization, tag);
  });
  if (family == families.end()) throw unknown_family(tag, said_by);
  std::vector<DocumentText> texts = mapping.texts();
  texts.push_back({"preset:" + family->name, std::string(preset_text(family->name))});
  Mapping extended(std::move(texts));
  const std::string& refused = extended.documents().back().refuse;
  if (refused.empty()) return extended;
  throw Error(ErrorCode::kUnsupported,
              fmt::format("the weights are stored as '{}', which is not supported", tag))
      .note("why", refused)
      .note("said by", said_by);
}

Mapping with_quantization(const Mapping& mapping, const ModelConfig* config) {
  const auto tag = config == nullptr ? std::nullopt : quantization_tag(*config);
  if (!tag) return mapping;
  return with_family(mapping, *tag, fmt::format("quantization_config in {}", config->file()));
}

std::string adapter_tag(const ModelConfig& adapter_config) {
  std::string type = adapter_config.text("peft_type").value_or("unknown");
  std::transform(type.begin(), type.end(), type.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return type == "lora" && is_true(adapter_config, "fan_in_fan_out") ? "lora/fan_in_fan_out" : type;
}

}  // namespace shardtool::mapping
