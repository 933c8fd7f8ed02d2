#pragma once

#include "tests/arch/source_tree.h"

namespace shardtool::arch {

/// The lines that name a home or work folder of one machine, or that say that something is
/// unfinished.
Findings forbidden_text(const Source& source);

/// Properties that ask for more than one thing without parentheses of their own: rapidcheck's
/// macros then evaluate all of it, also what stands behind a condition that does not hold.
Findings eager_properties(const Source& source);

/// A file whose name says nothing about what is in it.
Findings vague_name(const Source& source);

}  // namespace shardtool::arch
