#pragma once

#include "lib/api/transfer/write_files.h"
#include "lib/api/transform.h"

namespace shardtool::api {

/// Moves all tensors of a run in this process and publishes the output. Fills the report's fields
/// about what was done. Throws the errors of transfer().
void run_alone(const WriteRun& run, const WriteOptions& options, bool compare_replicas,
               TransformReport& report);

/// Adds to the report what the moved tensors say of casts and of unpacking.
void count_changes(const WriteRun& run, std::span<const exec::CopiedTensor> copied,
                   TransformReport& report);

}  // namespace shardtool::api
