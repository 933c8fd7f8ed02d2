#pragma once

#include <string>
#include <vector>

#include "cli/commands/commands.h"

namespace shardtool::cli {

/// Parses the words after the program's name into `commands`, runs the command and flushes its
/// output. Throws Error.
ExitCode run_app(const Commands& commands, const std::vector<std::string>& words);

}  // namespace shardtool::cli
