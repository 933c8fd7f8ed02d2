#pragma once

#include <span>
#include <string_view>

namespace shardtool::layouts {

/// A file of lib/layouts that the build compiles in.
struct EmbeddedFile {
  std::string_view name;  ///< without folder and ".json"
  std::string_view text;
};

/// lib/layouts/*.json, sorted by name.
std::span<const EmbeddedFile> embedded_layouts();

}  // namespace shardtool::layouts
