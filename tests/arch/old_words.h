#pragma once

#include "tests/arch/source_tree.h"

namespace shardtool::arch {

/// Texts of the program that use a word which the table "Words" of CONTRIBUTING.md replaces: string
/// literals of C++, each with those that follow it directly, and all lines of other files.
Findings old_words(const Source& source);

}  // namespace shardtool::arch
