#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace shardtool::cli {

/// Arguments of `shardtool help`, as typed.
struct HelpArgs {
  std::vector<std::string> topic = {};  ///< words of a command
  bool man = false;
};

/// `args` and `tree` must outlive the command.
Command help_command(HelpArgs& args, const CommandTree& tree);

}  // namespace shardtool::cli
