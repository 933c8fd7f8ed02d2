#pragma once

#include <span>

#include "lib/base/embedded_file.h"

namespace shardtool::layouts {

/// lib/layouts/*.json, sorted by name.
std::span<const EmbeddedFile> embedded_layouts();

}  // namespace shardtool::layouts
