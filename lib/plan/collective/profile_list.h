#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::plan {

/// Names of the built-in profiles, sorted.
std::vector<std::string> profile_names();
/// JSON text of one profile. Throws kUsage with near misses.
std::string_view profile_text(std::string_view name);
/// Decodes a built-in profile. Throws as profile_text.
HardwareProfile find_profile(std::string_view name);

}  // namespace shardtool::plan
