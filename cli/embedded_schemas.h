#pragma once

#include <span>
#include <string_view>

namespace shardtool::cli {

/// A JSON Schema of cli/schemas, compiled in by the build.
struct EmbeddedSchema {
  std::string_view name;  ///< "manifest"
  std::string_view text;
};

/// All schemas, sorted by name.
std::span<const EmbeddedSchema> embedded_schemas();

}  // namespace shardtool::cli
