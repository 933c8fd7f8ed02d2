#pragma once

#include "tests/arch/source_tree.h"

namespace shardtool::arch {

/// Includes that do not point down in the diagram of lib/README.md. A module is the folder of lib,
/// or "kernels", or "cli"; modules of one level must not include each other.
Findings upward_includes(const Source& source);

}  // namespace shardtool::arch
