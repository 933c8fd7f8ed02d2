#include "lib/index/holder_set_pool.h"

namespace shardtool::index {
namespace {

std::vector<i64> key_of(const Shape& shape, const std::vector<Region>& regions) {
  std::vector<i64> key{static_cast<i64>(shape.size())};
  key.insert(key.end(), shape.begin(), shape.end());
  for (const Region& region : regions) {
    for (const AxisMap& map : region) {
      key.push_back(map.local_size());
      key.push_back(static_cast<i64>(map.pieces().size()));
      for (const Piece& p : map.pieces()) key.insert(key.end(), {p.local, p.global, p.size});
    }
  }
  return key;
}

}  // namespace

std::shared_ptr<const HolderSet> HolderSetPool::of(const Shape& shape,
                                                   const std::vector<Region>& regions) {
  auto& set = sets_[key_of(shape, regions)];
  if (!set) set = std::make_shared<HolderSet>(HolderSet::of(shape, regions));
  return set;
}

std::shared_ptr<const HolderSet> HolderSetPool::whole(const Shape& shape) {
  auto& set = wholes_[shape];
  if (!set) set = of(shape, {whole_region(shape)});
  return set;
}

}  // namespace shardtool::index
