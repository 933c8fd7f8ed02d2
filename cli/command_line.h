#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command.h"

namespace shardtool::cli {

enum class Role { kCommand, kFlag, kValue, kPositional, kMark };

/// One word of a command line with its role.
struct Word {
  std::string text = {};
  Role role = Role::kPositional;
};

/// Assigns roles to the words after the program's name before they are parsed, because CLI11 blames
/// the next word for a mistyped flag. Throws kUsage with suggestions for an unknown command or
/// flag, a flag without its value, a repeated flag, or an extra positional.
std::vector<Word> read_words(std::span<const std::string> words, const CommandTree& tree);

}  // namespace shardtool::cli
