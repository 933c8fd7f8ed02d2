#pragma once

#include <span>

#include "lib/base/embedded_file.h"

namespace shardtool::family {

/// lib/family/*.json, sorted by name.
std::span<const EmbeddedFile> embedded_families();

}  // namespace shardtool::family
