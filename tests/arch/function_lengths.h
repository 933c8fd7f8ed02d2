#pragma once

#include "tests/arch/source_tree.h"

namespace shardtool::arch {

struct Function {
  size_t first_line = 0;  ///< first line of its declaration, from 1
  size_t lines = 0;       ///< up to its closing brace
};

/// Function bodies of a C++ file, in order; a lambda is part of its function. Uses braces, not
/// grammar: a block is a function if its head has a parameter list and all enclosing blocks are
/// namespaces or classes.
std::vector<Function> functions_of(std::string_view text);

}  // namespace shardtool::arch
