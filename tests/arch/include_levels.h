#pragma once

#include "tests/arch/source_tree.h"

namespace shardtool::arch {

/// The includes that do not point down in the diagram of lib/README.md. A module is the folder of
/// lib, or "kernels", or "cli"; the modules of one level do not see each other.
Findings upward_includes(const Source& source);

}  // namespace shardtool::arch
