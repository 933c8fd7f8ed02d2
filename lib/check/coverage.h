#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/check/findings.h"
#include "lib/format/checkpoint.h"
#include "lib/index/holder_set.h"

namespace shardtool::check {

/// Tensor and its holders. Tensors with equal holders share the set, which is checked once.
struct HeldTensor {
  const std::string* name = nullptr;
  std::shared_ptr<const index::HolderSet> holders;
  bool is_overlap_meant = false;  ///< the layout declares that devices share elements
};

/// ST03: every element of every tensor is held, and holders that share some are replicas; ST02:
/// reports an uneven cut, once for all tensors that share it. `file` is the file with the layout.
void check_coverage(std::span<const HeldTensor> tensors, const std::string& file,
                    Findings& findings);

/// ST03: every device of the manifest's mesh is in one of the folders. Returns true if so.
bool check_ranks(std::span<const format::Checkpoint> parts, Findings& findings);

/// ST03: every tensor that the shards of a manifest cover has a digest in it, and the bytes of
/// every tensor were read when it was written.
void check_digests(const format::Checkpoint& part, Findings& findings);

/// True if some elements are held by two holders that are not replicas of each other. Requires that
/// there is no gap.
bool has_partial_overlap(const index::HolderSet& holders);

}  // namespace shardtool::check
