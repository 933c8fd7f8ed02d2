#pragma once

#include "tests/arch/source_tree.h"

namespace shardtool::arch {

/// The lines that name a home or work folder of one machine, or that say that something is
/// unfinished.
Findings forbidden_text(const Source& source);

/// A file whose name says nothing about what is in it.
Findings vague_name(const Source& source);

}  // namespace shardtool::arch
