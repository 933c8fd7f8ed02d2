#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/document/document.h"

namespace shardtool::mapping {

/// A compiled-in mapping document: the mapping of a model family (lib/family/<name>.json), or
/// families/<name>.json.
struct Preset {
  std::string name;
  std::string description;
  std::vector<std::string> architectures;  ///< "when" of the document
  std::vector<std::string> model_types;
  std::vector<std::string> tensors_present;  ///< globs, each of which must match some tensor
  std::vector<ConfigCondition> config;       ///< conditions on config.json
  std::vector<std::string> quantization;     ///< tags of a family of quantised tensors
};

/// The presets of models, sorted by name.
std::span<const Preset> presets();
/// The families of quantised tensors, sorted by name. Their documents have companions and are added
/// to a model's preset (quantization.h).
std::span<const Preset> quantized_families();
/// Returns a preset or a family, or null.
const Preset* known_preset(std::string_view name);
/// Same, but throws an error with similar names: by default kUsage, as for a name that was typed.
const Preset& find_preset(std::string_view name, ErrorCode unknown = ErrorCode::kUsage);
/// Returns the document of a preset or a family. Throws as find_preset does.
std::string_view preset_text(std::string_view name, ErrorCode unknown = ErrorCode::kUsage);

/// Returns true if config.json has one of the condition's values.
bool holds(const ConfigCondition& condition, const ModelConfig& config);

/// Returns the preset of a model, among those whose conditions on the config hold: by
/// architectures[0], then by model_type, and by tensor names only if the config has neither.
/// Returns nullopt if no preset or several fit, so a model with an unknown model_type gets no
/// preset by its tensor names.
std::optional<std::string> detect_preset(const ModelConfig& config,
                                         std::span<const TensorSpec> tensors);

}  // namespace shardtool::mapping
