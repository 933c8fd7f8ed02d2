#pragma once

#include <string>

#include "cli/command.h"

namespace shardtool::cli {

/// Returns the scdoc source of shardtool-COMMAND(1), or of shardtool(1) if `command` is null.
/// Generated from the same descriptions as --help, so the pages cannot drift.
std::string man_page(const Command* command, const CommandTree& tree);

}  // namespace shardtool::cli
