#pragma once

#include <string>

#include "cli/command.h"

namespace shardtool::cli {

/// Arguments of `shardtool resume`, as typed.
struct ResumeArgs {
  std::string folder = {};
  bool list = false;
  bool discard = false;
};

/// `args` must outlive the command.
Command resume_command(ResumeArgs& args);

}  // namespace shardtool::cli
