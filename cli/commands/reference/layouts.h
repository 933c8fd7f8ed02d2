#pragma once

#include "cli/args/show.h"
#include "cli/command.h"

namespace shardtool::cli {

/// `args` must outlive the command.
Command layouts_command(ShowArgs& args);

}  // namespace shardtool::cli
