#pragma once

#include <map>
#include <memory>
#include <vector>

#include "lib/base/shape.h"
#include "lib/index/holder_set.h"

namespace shardtool::index {

/// Shares the holder sets of tensors with equal regions.
class HolderSetPool {
 public:
  /// HolderSet::of, the same object for equal arguments.
  std::shared_ptr<const HolderSet> of(const Shape& shape, const std::vector<Region>& regions);
  std::shared_ptr<const HolderSet> whole(const Shape& shape);

 private:
  std::map<std::vector<i64>, std::shared_ptr<const HolderSet>> sets_;
  std::map<Shape, std::shared_ptr<const HolderSet>> wholes_;  ///< of `sets_`
};

}  // namespace shardtool::index
