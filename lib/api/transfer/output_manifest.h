#pragma once

#include "lib/api/transfer/output_plan.h"

namespace shardtool::api {

/// The manifest without its tensors, and the record of one target tensor, as copied or, if its data
/// is not known yet, as planned.
format::Manifest manifest_head(const LogicalCheckpoint& source, const TargetLayout& target,
                               const OutputPlan& plan);
format::TensorRecord tensor_record(const LogicalCheckpoint& source, const TargetLayout& target,
                                   const OutputPlan& plan, size_t tensor,
                                   const exec::CopiedTensor& copied);

/// Returns the bytes of the manifest with all hashes.
i64 manifest_bytes(const LogicalCheckpoint& source, const TargetLayout& target,
                   const OutputPlan& plan);

}  // namespace shardtool::api
