#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/document/document.h"

namespace shardtool::mapping {

/// A mapping document that is compiled in: the mapping of a model family (lib/family/<name>.json),
/// or families/<name>.json.
struct Preset {
  std::string name;
  std::string description;
  std::vector<std::string> architectures;  ///< "when" of the document
  std::vector<std::string> model_types;
  std::vector<std::string> tensors_present;  ///< globs that must all match some tensor
  std::vector<ConfigCondition> config;       ///< what the config must say
  std::vector<std::string> quantization;     ///< of a family of quantised tensors: its tags
};

/// The presets for models, sorted by name.
std::span<const Preset> presets();
/// The families of quantised tensors, sorted by name: documents of companions that a model's preset
/// is followed by (quantization.h).
std::span<const Preset> quantized_families();
/// A preset or a family. Throws kUnknownName with near misses.
const Preset& find_preset(std::string_view name);
/// The document of a preset or a family. Throws kUnknownName with near misses.
std::string_view preset_text(std::string_view name);

/// The preset for a model, among those whose conditions on the config hold: by architectures[0],
/// then by model_type; only where the config says neither, by the tensors' names. Nothing when none
/// or several presets fit: a model that calls itself something else is not guessed to be one of
/// ours.
std::optional<std::string> detect_preset(const ModelConfig& config,
                                         std::span<const TensorSpec> tensors);

}  // namespace shardtool::mapping
