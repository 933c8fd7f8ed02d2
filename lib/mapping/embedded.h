#pragma once

#include <span>
#include <string_view>

namespace shardtool::mapping {

/// A file that the build compiles in.
struct EmbeddedFile {
  std::string_view name;  ///< without folder and ".json"
  std::string_view text;
};

/// families/*.json, sorted by name: families of quantised tensors.
std::span<const EmbeddedFile> embedded_presets();
/// schema/mapping-v1.json.
std::string_view embedded_schema();

}  // namespace shardtool::mapping
