#pragma once

#include <vector>

#include "lib/api/transfer/write_files.h"
#include "lib/api/transform.h"

namespace shardtool::api {

/// Counts the requests for data of the source that run_to_store() sends for the tensors that
/// `is_mine` selects, if the store refuses no copy. Sends none.
SourceRequests count_requests_to_store(const WriteRun& run, const WriteOptions& options,
                                       const std::vector<bool>& is_mine);

}  // namespace shardtool::api
