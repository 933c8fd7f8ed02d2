#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/check/findings.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/index/holder_set.h"

namespace shardtool::check {

/// A tensor and who holds it. Tensors with equal holders share the set, and are looked at once.
struct HeldTensor {
  const std::string* name = nullptr;
  std::shared_ptr<const index::HolderSet> holders;
  bool is_overlap_meant = false;  ///< the layout says that devices share elements
};

/// Whether a manifest's record says that devices share elements without being replicas: heads that
/// are gathered, or blocks that a cut falls into.
bool is_overlap_meant(const checkpoint::TensorRecord& record);

/// ST03: every element of every tensor is held, and holders that share some are replicas; ST02: an
/// uneven cut is announced, once for all tensors that share it. `file` is where the layout stands.
void check_coverage(std::span<const HeldTensor> tensors, const std::string& file,
                    Findings& findings);

/// ST03: every device of the manifest's mesh is in one of the folders. Returns whether all are.
bool check_ranks(std::span<const checkpoint::Checkpoint> parts, Findings& findings);

/// ST03: every tensor that the shards of a manifest cover has a digest there.
void check_digests(const checkpoint::Checkpoint& part, Findings& findings);

/// The box that no holder has and that comes first in the tensor, "[0, 4) x [7168, 7232)"; empty
/// when there is none.
std::string first_gap(const index::HolderSet& holders);

/// Whether some elements are held by two holders that are no replicas of each other. Requires that
/// there is no gap.
bool has_partial_overlap(const index::HolderSet& holders);

}  // namespace shardtool::check
