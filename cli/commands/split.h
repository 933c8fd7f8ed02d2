#pragma once

#include <string>

#include "cli/args/mapping_args.h"
#include "cli/args/write_args.h"
#include "cli/command.h"

namespace shardtool::cli {

/// Arguments of `shardtool split`, as typed.
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
