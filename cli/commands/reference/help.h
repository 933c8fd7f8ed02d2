#pragma once

#include <optional>
#include <string>

#include "cli/command.h"

namespace shardtool::cli {

/// Arguments of `shardtool help`, as typed.
struct HelpArgs {
  std::optional<std::string> topic = {};
  bool man = false;
};

/// `args` and `tree` must outlive the command.
Command help_command(HelpArgs& args, const CommandTree& tree);

}  // namespace shardtool::cli
