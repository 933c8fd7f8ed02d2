#pragma once

#include <string>

#include "cli/args/write_args.h"
#include "cli/command.h"
#include "lib/api/diff.h"

namespace shardtool::cli {

/// Arguments of `shardtool diff`, as typed.
struct DiffArgs {
  std::string a = {};
  std::string b = {};
  bool metadata_only = false;
  bool values = false;
  std::string model_config = {};
  ResourceArgs resources = {};
};

/// Throws kUsage.
api::DiffOptions to_options(const DiffArgs& args);
/// `args` must outlive the command.
Command diff_command(DiffArgs& args);

}  // namespace shardtool::cli
