#pragma once

#include <span>

#include "lib/index/holder_set.h"

namespace shardtool::plan {

/// Holders of a tensor and their devices. Non-owning.
///
/// P1 no ranks: one holder, which is storage and no device; else one rank per holder, each once
struct Holders {
  const index::HolderSet* set = nullptr;
  std::span<const i64> ranks;

  bool in_storage() const { return ranks.empty(); }
};

}  // namespace shardtool::plan
