#include "lib/plan/weights.h"

#include <algorithm>

#include "lib/index/join.h"
#include "lib/plan/byte_count.h"

namespace shardtool::plan {
namespace {

/// Product over the axes of a size of the holder's maps.
i64 elements_of(const index::HolderSet& set, int holder, i64 (index::AxisMap::*size)() const) {
  i64 elements = 1;
  for (int axis = 0; axis < set.rank(); ++axis) {
    elements *= (set.maps(axis)[static_cast<size_t>(set.pick(holder)[axis])].*size)();
  }
  return elements;
}

/// Adds, for every box, a copy to each holder except the one of the lowest rank.
void add_replicas(const WeightGroup& group, std::vector<DeviceWeights>& devices) {
  const index::HolderJoin join(*group.held.set, *group.held.set);
  std::vector<int> having;
  join.for_each_box([&](index::HolderJoin::Box box) {
    having.clear();
    for (const auto& located : join.destinations_of(box)) {
      having.insert(having.end(), located.holders.begin(), located.holders.end());
    }
    if (having.size() < 2) return;
    const auto rank = [&](int holder) { return group.held.ranks[static_cast<size_t>(holder)]; };
    std::iter_swap(having.begin(),
                   std::min_element(having.begin(), having.end(),
                                    [&](int a, int b) { return rank(a) < rank(b); }));
    const i64 bytes = bytes_of(index::elements(box), group.bits, group.tensors);
    for (size_t h = 1; h < having.size(); ++h) {
      add_bytes(devices[static_cast<size_t>(rank(having[h]))].replicated_bytes, bytes);
    }
  });
}

}  // namespace

std::vector<DeviceWeights> device_weights(i64 n_devices, int n_classes,
                                          std::span<const WeightGroup> groups) {
  DeviceWeights nothing;
  nothing.by_class.assign(static_cast<size_t>(n_classes), 0);
  std::vector<DeviceWeights> devices(static_cast<size_t>(n_devices), nothing);
  for (const WeightGroup& group : groups) {
    for (int h = 0; h < group.held.set->size(); ++h) {
      DeviceWeights& device =
          devices[static_cast<size_t>(group.held.ranks[static_cast<size_t>(h)])];
      const auto bytes_by = [&](i64 (index::AxisMap::*size)() const) {
        return bytes_of(elements_of(*group.held.set, h, size), group.bits, group.tensors);
      };
      const i64 bytes = bytes_by(&index::AxisMap::local_size);
      const i64 image = bytes_by(&index::AxisMap::image_size);
      add_bytes(device.bytes, bytes);
      add_bytes(device.by_class[static_cast<size_t>(group.tensor_class)], bytes);
      add_bytes(device.padding_bytes, bytes - image);
    }
    add_replicas(group, devices);
  }
  return devices;
}

}  // namespace shardtool::plan
