#pragma once

#include <span>
#include <string_view>

#include "lib/base/embedded_file.h"

namespace shardtool::mapping {

/// families/*.json, sorted by name: families of quantised tensors.
std::span<const EmbeddedFile> embedded_presets();
/// schema/mapping-v1.json.
std::string_view embedded_schema();

}  // namespace shardtool::mapping
