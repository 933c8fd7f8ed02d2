#include "lib/exec/files/kept_ranges.h"

namespace shardtool::exec {

bool KeptRanges::reserve(i64 bytes) {
  constexpr i64 kOfTable = 128;  // a node of the map, and what two allocations add
  if (bytes > left_ - kOfTable) return false;
  left_ -= bytes + kOfTable;
  return true;
}

void KeptRanges::keep(const Slot& slot, Bytes bytes) {
  by_place_.insert_or_assign({slot.file, slot.offset}, std::move(bytes));
}

const KeptRanges::Bytes* KeptRanges::find(const Slot& slot, i64 bytes) const {
  const auto found = by_place_.find({slot.file, slot.offset});
  if (found == by_place_.end() || std::ssize(found->second) != bytes) return nullptr;
  return &found->second;
}

}  // namespace shardtool::exec
