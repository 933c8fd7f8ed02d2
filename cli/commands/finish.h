#pragma once

#include <string>

#include "cli/args/write_args.h"
#include "cli/command.h"
#include "lib/api/finish.h"

namespace shardtool::cli {

/// Arguments of `shardtool finish`, as typed.
struct FinishArgs {
  std::string output = {};
  bool force = false;
  bool verify = false;
  ResourceArgs resources = {};
};

/// Throws kUsage.
api::FinishOptions to_options(const FinishArgs& args);

/// `args` must outlive the command.
Command finish_command(FinishArgs& args);

}  // namespace shardtool::cli
