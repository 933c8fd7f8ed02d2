#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command.h"

namespace shardtool::cli {

/// One argument as typed: a flag with its value, a switch without one, or a positional.
struct TypedArgument {
  const Argument* argument = nullptr;
  std::string text = {};
};

/// The words after the program's name: the command, or null if none was typed, and the arguments in
/// the order of the words.
struct CommandLine {
  const Command* command = nullptr;
  std::vector<TypedArgument> arguments = {};
};

/// Parses the command, of one or two words, and after it "--flag value", "--flag=value", "-j4", "-j
/// 4", clusters of switches "-qn", and positionals; behind "--" all words are positionals. Throws
/// kUsage with suggestions for an unknown command or flag, a flag without its value, a repeated
/// flag, or an extra positional.
CommandLine parse_words(std::span<const std::string> words, const CommandTree& tree);

/// Writes the values to the arguments' targets: those that were typed, else those of environment
/// variables. Throws kUsage, with a suggestion, for a value that is not one of the choices.
void fill_targets(const CommandLine& line, const CommandTree& tree);

/// Does what both do with the words that they take, for a process that tells others of the error of
/// its command line. Returns the command, or the one that is spelt most like a word; null if there
/// is none.
const Command* fill_known_targets(std::span<const std::string> words, const CommandTree& tree);

/// Environment variable that gave the value of this flag; empty if it was typed or has none.
std::string source_of(const std::string& flag, const CommandLine& line, const CommandTree& tree);

}  // namespace shardtool::cli
