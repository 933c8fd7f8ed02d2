#pragma once

#include "tests/arch/source_tree.h"

namespace shardtool::arch {

/// Lines that name a home or work folder of one machine, or mark unfinished work.
Findings forbidden_text(const Source& source);

/// Properties with several conditions outside of parentheses: rapidcheck's macros then evaluate all
/// of them, even after a condition that is false.
Findings eager_properties(const Source& source);

/// Files with a name that does not describe their content.
Findings vague_name(const Source& source);

}  // namespace shardtool::arch
