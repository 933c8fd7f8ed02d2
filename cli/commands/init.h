#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "lib/api/catalogue/presets.h"

namespace shardtool::cli {

/// Arguments of `shardtool init`, as typed.
struct InitArgs {
  std::string source = {};
  std::optional<std::string> preset = {};
  std::optional<std::string> mesh = {};
  std::optional<std::string> output = {};
};

/// Throws kUsage.
api::InitOptions to_options(const InitArgs& args);
/// `args` must outlive the command.
Command init_command(InitArgs& args);

}  // namespace shardtool::cli
