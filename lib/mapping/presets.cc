#include "lib/mapping/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/mapping/document/document.h"
#include "lib/mapping/document/glob.h"
#include "lib/mapping/embedded.h"

namespace shardtool::mapping {
namespace {

/// The presets for models, or the families of quantised tensors.
std::vector<Preset> decode_presets(bool families) {
  std::vector<Preset> presets;
  for (const EmbeddedFile& file : embedded_presets()) {
    const DocumentHead head = decode_head(file.text, "preset:" + std::string(file.name));
    if (head.quantization.empty() == families) continue;
    presets.push_back({std::string(file.name), head.description, head.when.architectures,
                       head.when.model_types, head.when.tensors_present, head.when.config,
                       head.quantization, std::string(file.text)});
  }
  std::sort(presets.begin(), presets.end(),
            [](const Preset& a, const Preset& b) { return a.name < b.name; });
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

bool holds(const ConfigCondition& condition, const ModelConfig& config) {
  const nlohmann::json* value = config.find(condition.path);
  return contains(condition.values, value == nullptr ? "null" : value->dump());
}

/// The name of the only preset that fits, among those whose conditions on the config hold.
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
  static const std::vector<Preset> decoded = decode_presets(false);
  return decoded;
}

std::span<const Preset> quantized_families() {
  static const std::vector<Preset> decoded = decode_presets(true);
  return decoded;
}

const Preset& find_preset(std::string_view name) {
  std::vector<std::string> names;
  for (const auto list : {presets(), quantized_families()}) {
    for (const Preset& preset : list) {
      if (preset.name == name) return preset;
      names.push_back(preset.name);
    }
  }
  Error e(ErrorCode::kUnknownName,
          fmt::format("there is no preset '{}'", quote_for_message(name, 60)));
  const std::string hint = did_you_mean(name, names);
  if (!hint.empty()) e.help(hint);
  throw e.help("`shardtool presets` lists them");
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
