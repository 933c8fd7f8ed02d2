#pragma once

#include <vector>

#include "lib/api/plan_search.h"
#include "lib/api/planning/search/replica_search.h"

namespace shardtool::api {

/// Sets what follows from the rows of a report: the optimum, the runner-up, the losses, the
/// bindings and the front. `beyond` has the rows that memory excludes.
void choose(const SearchOptions& options, const std::vector<BeyondMemory>& beyond,
            SearchReport& report);

}  // namespace shardtool::api
