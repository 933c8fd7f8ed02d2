#pragma once

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/check/data/data.h"

namespace shardtool::api {

/// Returns a tensor with all its holders and the manifests' hashes of their bytes.
check::DataTensor stored_data(const LogicalTensor& tensor);

/// Returns a constant with the hash of its bytes.
check::DataTensor stored_data(const LogicalConstant& constant);

}  // namespace shardtool::api
