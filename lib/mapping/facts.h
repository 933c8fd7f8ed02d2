#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace shardtool::mapping {

/// facts/<name>.json, parsed: what the field calls things, as data that the build compiles in.
/// Throws kInternal when there is none, or it is no strict JSON.
nlohmann::json facts(std::string_view name);

}  // namespace shardtool::mapping
