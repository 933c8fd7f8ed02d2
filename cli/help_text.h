#pragma once

#include <string>

#include "cli/command.h"

namespace shardtool::cli {

/// kShort fits one screen; kLong adds the description, all examples, variables and exit codes.
enum class HelpLength { kShort, kLong };

/// Help on a command, or on the whole program when `command` is null. Examples come first.
std::string help_text(const Command* command, const CommandTree& tree, HelpLength length);

/// "shardtool split SRC -o FOLDER [flags]".
std::string usage_line(const Command& command);

/// The left column of help: "-m, --mapping FILE" or "SRC...".
std::string signature(const Argument& argument);

/// The text of help with choices, variable and repetition: "... (auto, always, never)".
std::string full_help(const Argument& argument);

}  // namespace shardtool::cli
