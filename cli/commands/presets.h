#pragma once

#include <optional>
#include <string>

#include "cli/command.h"

namespace shardtool::cli {

/// `shardtool presets [show NAME]`, as typed.
struct PresetsArgs {
  std::optional<std::string> action = {};
  std::optional<std::string> name = {};
};

/// `args` must outlive the command.
Command presets_command(PresetsArgs& args);

}  // namespace shardtool::cli
