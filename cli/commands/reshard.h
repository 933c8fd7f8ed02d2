#pragma once

#include <string>
#include <vector>

#include "cli/args/mapping_args.h"
#include "cli/args/write_args.h"
#include "cli/command.h"

namespace shardtool::cli {

/// Arguments of `shardtool reshard`, as typed.
struct ReshardArgs {
  std::optional<std::string> plan = {};
  std::vector<std::string> sources = {};
  MappingArgs to = {};
  RankArgs ranks = {};
  std::string replicas = "compare";
  WriteArgs write = {};
};

/// Throws kUsage, also if no destination was typed.
api::ReshardOptions to_options(const ReshardArgs& args);
/// `args` must outlive the command.
Command reshard_command(ReshardArgs& args);

}  // namespace shardtool::cli
