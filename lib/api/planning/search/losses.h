#pragma once

#include "lib/api/plan_search.h"

namespace shardtool::api {

/// Sets what follows from the rows of a report: the optimum, the runner-up, the losses, the
/// bindings and the front.
void choose(const SearchOptions& options, SearchReport& report);

}  // namespace shardtool::api
