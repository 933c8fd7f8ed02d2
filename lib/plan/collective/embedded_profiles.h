#pragma once

#include <span>
#include <string_view>

namespace shardtool::plan {

/// File of profiles/ that the build compiles in.
struct EmbeddedProfile {
  std::string_view name;  ///< without folder and ".json"
  std::string_view text;
};

/// Embedded profiles, sorted by name.
std::span<const EmbeddedProfile> embedded_profiles();

}  // namespace shardtool::plan
