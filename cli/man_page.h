#pragma once

#include <string>

#include "cli/command.h"

namespace shardtool::cli {

/// The scdoc source of shardtool-COMMAND(1), or of shardtool(1) when `command` is null. Made from
/// the same descriptions as --help, so the pages cannot drift.
std::string man_page(const Command* command, const CommandTree& tree);

}  // namespace shardtool::cli
