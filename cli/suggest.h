#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command.h"

namespace shardtool::cli {

enum class Role { kCommand, kFlag, kValue, kPositional, kMark };

/// One word of a command line and what it stands for.
struct Word {
  std::string text = {};
  Role role = Role::kPositional;
};

/// Walks the words after the program's name against the tree, before they are parsed, because the
/// parser reports a mistyped flag as a problem of whatever word comes next. Throws kUsage, with
/// near misses: an unknown command or flag, a flag without its value, a flag given twice, a
/// positional too many.
std::vector<Word> read_words(std::span<const std::string> words, const CommandTree& tree);

}  // namespace shardtool::cli
