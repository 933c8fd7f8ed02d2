#pragma once

#include <map>
#include <memory>
#include <span>
#include <tuple>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/match/companions.h"
#include "lib/mapping/resolve/resolution.h"

namespace shardtool::mapping {

/// Decides the layout of companions from their leaders. Keeps references to the constructor's
/// arguments.
class Followers {
 public:
  Followers(const Companions& companions, const CompanionSizes& sizes, Straddle straddle,
            bool allow_empty_shards)
      : companions_(companions),
        sizes_(sizes),
        straddle_(straddle),
        allow_empty_shards_(allow_empty_shards) {}

  /// Returns the decision for `tensor` (an index into `tensors`), which is this companion of the
  /// leader. Tensors of the same shape and dtype whose leaders have the same layout share one
  /// decision. Throws kShapeMismatch, kBlockStraddle, kStrategy, kEmptyShard and kSubByteCut with
  /// both tensors, once for all that share the decision: the others have no layout.
  ResolvedTensor follow(size_t companion, size_t tensor, const ResolvedTensor& leader,
                        std::span<const TensorSpec> tensors);

 private:
  struct Followed {
    std::shared_ptr<const layout::Layout> layout;
    std::shared_ptr<const TensorDecision> by;
    bool has_failed = false;
  };
  using Key = std::tuple<size_t, const layout::Layout*, Shape, Dtype>;

  Followed decide(const PlacedCompanion& placed, const layout::BundleMember& member,
                  const ResolvedTensor& leading, Dtype dtype) const;

  const Companions& companions_;
  const CompanionSizes& sizes_;
  Straddle straddle_;
  bool allow_empty_shards_;
  std::map<Key, Followed> followed_;
};

}  // namespace shardtool::mapping
