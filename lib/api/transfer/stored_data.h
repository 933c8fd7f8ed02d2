#pragma once

#include "lib/api/transfer/logical_checkpoint.h"
#include "lib/check/data.h"

namespace shardtool::api {

/// A tensor with all its holders and what the manifests record of their bytes.
check::DataTensor stored_data(const LogicalCheckpoint& checkpoint, const LogicalTensor& tensor);

}  // namespace shardtool::api
