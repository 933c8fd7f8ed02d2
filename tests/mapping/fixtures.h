#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lib/mapping/resolve/resolve.h"
#include "tests/support/held.h"
#include "tests/support/throws.h"

/// Small mappings, configs and checkpoints for inline use.
namespace shardtool::mapping {

using shardtool::testing::error_of;
using shardtool::testing::Held;
using shardtool::testing::held;

inline Mapping mapping_of(const std::string& text) {
  return Mapping({{"mapping.json", text}});
}

/// A mapping with these axes and rules; `more` begins with a comma.
inline Mapping mapping_with(const std::string& axes, const std::string& rules,
                            const std::string& more = "") {
  return mapping_of(R"({"version": 1, "axes": {)" + axes + R"(}, "rules": [)" + rules + "]" + more +
                    "}");
}

/// A document that extends a preset.
inline Mapping extending(std::string_view preset, const std::string& text) {
  std::vector<DocumentText> texts = {{"mapping.json", text}};
  const Mapping inherited = load_preset(preset);
  texts.insert(texts.end(), inherited.texts().begin(), inherited.texts().end());
  return Mapping(std::move(texts));
}

inline ModelConfig config_of(const std::string& text) {
  return parse_config(text, "config.json");
}

inline TensorSpec spec(std::string name, Shape shape, Dtype dtype = Dtype::kBF16) {
  return {std::move(name), dtype, std::move(shape)};
}

inline ResolveOptions over(std::string_view mesh) {
  ResolveOptions options;
  options.mesh = mesh::parse_mesh(mesh);
  return options;
}

/// Resolution of a tensor, by name.
inline const ResolvedTensor& at(const Resolution& resolution,
                                const std::vector<TensorSpec>& tensors, std::string_view name) {
  for (const ResolvedTensor& tensor : resolution.tensors) {
    if (tensors[tensor.tensor].name == name) return tensor;
  }
  throw std::logic_error("not resolved: " + std::string(name));
}

/// Intervals of an axis of the only tensor on every device.
inline Held only(const Mapping& mapping, const TensorSpec& tensor, const ModelConfig* config,
                 const ResolveOptions& options, size_t axis = 0) {
  const std::vector<TensorSpec> tensors = {tensor};
  return held(*resolve(mapping, tensors, config, options).tensors.at(0).layout, axis);
}

}  // namespace shardtool::mapping
