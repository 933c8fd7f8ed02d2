#pragma once

#include <string>

#include "cli/command.h"

namespace shardtool::cli {

/// Arguments of `shardtool completion`, as typed.
struct CompletionArgs {
  std::string shell = {};
};

/// `args` and `tree` must outlive the command.
Command completion_command(CompletionArgs& args, const CommandTree& tree);

}  // namespace shardtool::cli
