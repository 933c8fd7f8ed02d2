#pragma once

#include <span>

#include "lib/api/transfer/logical_checkpoint.h"
#include "lib/api/transform.h"
#include "lib/exec/stream.h"

namespace shardtool::api {

/// One of several equal shares of the work.
struct Share {
  int number = 0;
  int of = 1;
};

/// Reads every replicated element from all of its holders, for this share of the tensors. Returns
/// the number of copies compared. Throws kDataMismatch with the tensor, the rank and the first byte
/// if two differ.
i64 compare_replicas(const LogicalCheckpoint& source, std::span<const exec::SourceFile> files,
                     const exec::Resources& resources, Share share = {});

}  // namespace shardtool::api
