#pragma once

#include <map>
#include <memory>
#include <vector>

#include "lib/base/shape.h"
#include "lib/index/holder_set.h"

namespace shardtool::index {

/// Cache that shares the holder sets of tensors with equal regions.
class HolderSetPool {
 public:
  /// Like HolderSet::of; returns the same object for equal arguments.
  std::shared_ptr<const HolderSet> of(const Shape& shape, const std::vector<Region>& regions);
  std::shared_ptr<const HolderSet> whole(const Shape& shape);

 private:
  std::map<std::vector<i64>, std::shared_ptr<const HolderSet>> sets_;
  std::map<Shape, std::shared_ptr<const HolderSet>> wholes_;  ///< the whole-tensor sets of `sets_`
};

}  // namespace shardtool::index
