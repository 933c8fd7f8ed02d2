#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transform.h"
#include "lib/exec/compare.h"
#include "lib/exec/stream.h"
#include "lib/mapping/resolve/output_tensors.h"

namespace shardtool::api {

/// A tensor whose copies differ, and the first holder of other bytes: "rank 3", or the file of a
/// chunk.
struct DifferentReplicas {
  const LogicalTensor* tensor = nullptr;
  exec::Difference difference;
  std::string holder;
};

/// Reads every replicated element from all of its holders, for this share of the tensors. Adds the
/// number of copies compared to `copies`.
std::vector<DifferentReplicas> different_replicas(const LogicalCheckpoint& source,
                                                  std::span<const exec::SourceFile> files,
                                                  const exec::Resources& resources, Share share,
                                                  i64& copies);

/// Returns the number of copies compared. Throws kDataMismatch with the tensor, the rank and the
/// first byte if two differ.
i64 compare_replicas(const LogicalCheckpoint& source, std::span<const exec::SourceFile> files,
                     const exec::Resources& resources, Share share = {});

/// Compares tensors that are left out with those that they must be equal to. Throws kTied with the
/// first byte that differs.
void require_equal(const LogicalCheckpoint& source, std::span<const mapping::LeftOut> left_out,
                   std::span<const exec::SourceFile> files, const exec::Resources& resources);

}  // namespace shardtool::api
