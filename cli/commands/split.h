#pragma once

#include <string>

#include "cli/command.h"
#include "cli/commands/mapping_args.h"
#include "cli/commands/write_args.h"

namespace shardtool::cli {

/// `shardtool split`, as typed.
struct SplitArgs {
  std::string source = {};
  MappingArgs mapping = {};
  RankArgs ranks = {};
  WriteArgs write = {};
};

/// Throws kUsage.
api::SplitOptions to_options(const SplitArgs& args);
/// `args` must outlive the command.
Command split_command(SplitArgs& args);

}  // namespace shardtool::cli
