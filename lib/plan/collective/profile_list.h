#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::plan {

/// The names of the profiles that are built in, sorted.
std::vector<std::string> profile_names();
/// The JSON text of one. Throws kUnknownName with near misses.
std::string_view profile_text(std::string_view name);
/// The same, decoded.
HardwareProfile find_profile(std::string_view name);

}  // namespace shardtool::plan
