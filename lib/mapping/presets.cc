#include "lib/mapping/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/family/documents.h"
#include "lib/family/family.h"
#include "lib/mapping/document/document.h"
#include "lib/mapping/document/glob.h"
#include "lib/mapping/embedded.h"

namespace shardtool::mapping {
namespace {

/// Returns the families that have a mapping, sorted by name.
std::vector<Preset> model_presets() {
  std::vector<Preset> presets;
  for (const family::Family& family : family::families()) {
    if (!family.when) continue;
    const family::Family::When& when = *family.when;
    Preset preset{std::string(family.name),
                  family.description,
                  when.architectures,
                  when.model_types,
                  when.tensors_present,
                  {},
                  {}};
    for (const auto& [path, values] : when.config) preset.config.push_back({path, values});
    presets.push_back(std::move(preset));
  }
  return presets;
}

std::vector<Preset> quantization_presets() {
  std::vector<Preset> presets;
  for (const EmbeddedFile& file : embedded_presets()) {
    const DocumentHead head = decode_head(file.text, "preset:" + std::string(file.name));
    presets.push_back(
        {std::string(file.name), head.description, {}, {}, {}, {}, head.quantization});
  }
  return presets;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool has_all(const std::vector<std::string>& globs, std::span<const TensorSpec> tensors) {
  return !globs.empty() && std::all_of(globs.begin(), globs.end(), [&](const std::string& glob) {
    const auto matches = glob_filter(glob);
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const TensorSpec& tensor) { return matches(tensor.name); });
  });
}

/// Returns the preset that fits, if exactly one does among those whose conditions on the config
/// hold.
template <class Fits>
std::optional<std::string> only_one(const ModelConfig& config, const Fits& fits) {
  std::optional<std::string> found;
  for (const Preset& preset : presets()) {
    const bool possible =
        std::all_of(preset.config.begin(), preset.config.end(),
                    [&](const ConfigCondition& condition) { return holds(condition, config); });
    if (!possible || !fits(preset)) continue;
    if (found) return std::nullopt;
    found = preset.name;
  }
  return found;
}

}  // namespace

std::span<const Preset> presets() {
  static const std::vector<Preset> decoded = model_presets();
  return decoded;
}

std::span<const Preset> quantized_families() {
  static const std::vector<Preset> decoded = quantization_presets();
  return decoded;
}

const Preset* known_preset(std::string_view name) {
  for (const auto list : {presets(), quantized_families()}) {
    const auto found = std::ranges::find(list, name, &Preset::name);
    if (found != list.end()) return &*found;
  }
  return nullptr;
}

const Preset& find_preset(std::string_view name, ErrorCode unknown) {
  if (const Preset* preset = known_preset(name)) return *preset;
  std::vector<std::string> names;
  for (const auto list : {presets(), quantized_families()}) {
    for (const Preset& preset : list) names.push_back(preset.name);
  }
  Error e(unknown, fmt::format("there is no preset '{}'", quote_for_message(name, 60)));
  const std::string hint = did_you_mean(name, names);
  if (!hint.empty()) e.help(hint);
  throw e.help("`shardtool presets` lists them");
}

std::string_view preset_text(std::string_view name, ErrorCode unknown) {
  const Preset& preset = find_preset(name, unknown);
  if (preset.quantization.empty()) return family::mapping_document(preset.name);
  const auto files = embedded_presets();
  return std::ranges::find(files, preset.name, &EmbeddedFile::name)->text;
}

bool holds(const ConfigCondition& condition, const ModelConfig& config) {
  const nlohmann::json* value = config.find(condition.path);
  return contains(condition.values, value == nullptr ? "null" : value->dump());
}

std::optional<std::string> detect_preset(const ModelConfig& config,
                                         std::span<const TensorSpec> tensors) {
  const auto architectures = config.architectures();
  if (!architectures.empty()) {
    const auto by_architecture = only_one(config, [&](const Preset& preset) {
      return contains(preset.architectures, architectures.front());
    });
    if (by_architecture) return by_architecture;
  }
  const std::string type = config.model_type();
  const auto by_type =
      only_one(config, [&](const Preset& preset) { return contains(preset.model_types, type); });
  if (by_type) return by_type;
  if (!architectures.empty() || !type.empty()) return std::nullopt;
  return only_one(config,
                  [&](const Preset& preset) { return has_all(preset.tensors_present, tensors); });
}

}  // namespace shardtool::mapping
