#pragma once

#include <string>

#include "cli/command.h"

namespace shardtool::cli {

class Session;

/// kShort fits one screen; kLong adds the description, all examples, environment variables and exit
/// codes.
enum class HelpLength { kShort, kLong };

/// Returns the help of a command, or of the program if `command` is null. Examples come first.
std::string help_text(const Command* command, const CommandTree& tree, HelpLength length);

/// Prints a help text, as a document with --json.
void print_help(Session& session, const std::string& text);

/// Returns "shardtool split SRC -o FOLDER [flags]".
std::string usage_line(const Command& command);

/// Returns the left column of help: "-m, --mapping FILE" or "SRC...".
std::string signature(const Argument& argument);

/// Returns the help text with choices, environment variable and repetition: "... (auto, always,
/// never)".
std::string full_help(const Argument& argument);

}  // namespace shardtool::cli
