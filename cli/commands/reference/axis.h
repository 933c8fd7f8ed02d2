#pragma once

#include <optional>
#include <string>

#include "cli/args/mapping_args.h"
#include "cli/command.h"
#include "lib/api/axis.h"

namespace shardtool::cli {

/// Arguments of `shardtool axis`, as typed.
struct AxisArgs {
  std::string name = {};
  std::optional<std::string> size = {};
  MappingArgs mapping = {};
};

/// Throws kUsage.
api::AxisOptions to_options(const AxisArgs& args);
/// `args` must outlive the command.
Command axis_command(AxisArgs& args);

}  // namespace shardtool::cli
