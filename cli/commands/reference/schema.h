#pragma once

#include <optional>
#include <string>

#include "cli/command.h"

namespace shardtool::cli {

/// Arguments of `shardtool schema`, as typed.
struct SchemaArgs {
  std::optional<std::string> name = {};
};

Command schema_command(SchemaArgs& args);

}  // namespace shardtool::cli
