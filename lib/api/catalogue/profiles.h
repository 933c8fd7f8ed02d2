#pragma once

#include <string>
#include <vector>

#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::api {

/// Loads the built-in profile of this name, or a file if the name ends in ".json". Throws
/// kUsage, kHardwareProfile, and what store::read_text throws.
plan::HardwareProfile load_profile(const std::string& name_or_file);
/// Returns all built-in profiles, sorted by name.
std::vector<plan::HardwareProfile> list_profiles();
/// Returns the JSON text of a built-in profile. Throws kUsage with similar names.
std::string profile_text(const std::string& name);

}  // namespace shardtool::api
