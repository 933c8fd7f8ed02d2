#pragma once

#include "cli/command.h"

namespace shardtool::cli {

Command schema_command();

}  // namespace shardtool::cli
