#pragma once

#include <string_view>

namespace shardtool {

/// Key by which an editor finds the JSON Schema of a file. Every file that users write may have it
/// at the top, as a string without further meaning.
inline constexpr std::string_view kSchemaKey = "$schema";

}  // namespace shardtool
