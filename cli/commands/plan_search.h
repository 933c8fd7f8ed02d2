#pragma once

#include "cli/args/search_args.h"

namespace shardtool::cli {

Command plan_search_command(SearchArgs& args);

}  // namespace shardtool::cli
