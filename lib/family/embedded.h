#pragma once

#include <span>
#include <string_view>

namespace shardtool::family {

/// A file that the build compiles in.
struct EmbeddedFile {
  std::string_view name;  ///< without folder and ".json"
  std::string_view text;
};

/// lib/family/*.json, sorted by name.
std::span<const EmbeddedFile> embedded_families();

}  // namespace shardtool::family
