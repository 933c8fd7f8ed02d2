#pragma once

#include "tests/arch/source_tree.h"

namespace shardtool::arch {

struct Function {
  size_t first_line = 0;  ///< where its declaration begins, from 1
  size_t lines = 0;       ///< to its closing brace
};

/// The function bodies of a C++ file, in order; a lambda counts as a part of its function. Reads
/// braces, not grammar: a block is a function when its head has a parameter list and everything
/// around it is a namespace or a class.
std::vector<Function> functions_of(std::string_view text);

}  // namespace shardtool::arch
