#pragma once

#include <string_view>

namespace shardtool {

/// A file of the source tree that the build compiles in.
struct EmbeddedFile {
  std::string_view name;  ///< without folder and ".json"
  std::string_view text;
};

}  // namespace shardtool
