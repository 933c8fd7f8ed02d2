#pragma once

#include <span>

#include "lib/api/transfer/logical_checkpoint.h"
#include "lib/api/transform.h"
#include "lib/exec/stream.h"

namespace shardtool::api {

/// One of several equal parts of some work.
struct Share {
  int number = 0;
  int of = 1;
};

/// Reads every element that more than one holder has from all of them; of the
/// tensors only this share. Returns the number of copies compared. Throws kDataMismatch with the
/// tensor, the rank and the first byte where two differ.
i64 compare_replicas(const LogicalCheckpoint& source, std::span<const exec::SourceFile> files,
                     const exec::Resources& resources, Share share = {});

}  // namespace shardtool::api
