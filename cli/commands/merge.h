#pragma once

#include <string>
#include <vector>

#include "cli/args/write_args.h"
#include "cli/command.h"

namespace shardtool::cli {

/// Arguments of `shardtool merge`, as typed.
struct MergeArgs {
  std::vector<std::string> sources = {};
  std::string replicas = "compare";
  std::string model_config = {};
  WriteArgs write = {};
};

/// Throws kUsage.
api::MergeOptions to_options(const MergeArgs& args);
/// `args` must outlive the command.
Command merge_command(MergeArgs& args);

/// The --replicas flag of the verbs that read shards.
Argument replicas_argument(std::string& replicas);

}  // namespace shardtool::cli
