#pragma once

#include <string>
#include <string_view>

#include "cli/command.h"

namespace shardtool::cli {

/// Returns a script for "bash", "zsh" or "fish" that completes commands, flags and their choices,
/// and otherwise file names. The script only needs the shell.
std::string completion_script(std::string_view shell, const CommandTree& tree);

}  // namespace shardtool::cli
