#pragma once

#include <string>
#include <vector>

#include "cli/commands/commands.h"

namespace shardtool::cli {

/// Parses the words after the program's name into the places of `commands`, runs the command and
/// hands the answer to the system. Throws Error.
ExitCode run_app(const Commands& commands, const std::vector<std::string>& words);

}  // namespace shardtool::cli
