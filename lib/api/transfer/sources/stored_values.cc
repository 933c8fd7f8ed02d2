#include "lib/api/transfer/sources/stored_values.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace shardtool::api {
namespace {

/// Elements of a holder that are not the unsharded ones plus a shift.
struct Misses {
  i64 count = 0;
  OtherValue first = {};
};

std::optional<i64> plus_shift(i64 value, const index::ValueShift& shift, i64 local) {
  const auto& addends = shift.addends;
  if (addends.empty()) return value;
  return checked_add(value, addends.size() == 1 ? addends[0] : addends[static_cast<size_t>(local)]);
}

Misses misses_of(const index::AxisMap& map, std::span<const i64> stored, std::span<const i64> whole,
                 const index::ValueShift& shift) {
  Misses misses;
  for (const index::Piece& piece : map.pieces()) {
    for (i64 i = 0; i < piece.size; ++i) {
      const i64 local = piece.local + i;
      const i64 found = stored[static_cast<size_t>(local)];
      const i64 unsharded = whole[static_cast<size_t>(piece.global + i)];
      if (plus_shift(unsharded, shift, local) == found) continue;
      if (misses.count++ == 0) misses.first = {0, local, found, unsharded, std::nullopt};
    }
  }
  return misses;
}

/// Reads the values of one holder as they are stored.
std::vector<i64> values_of(const LogicalTensor& tensor, size_t holder,
                           std::span<const exec::SourceFile> files) {
  const Shape shape = tensor.side.holders->local_shape(static_cast<int>(holder));
  const exec::MoveSide alone{
      std::make_shared<const index::HolderSet>(index::HolderSet::whole(shape)),
      {tensor.side.slots[holder]}};
  return exec::load_shifted(tensor.spec.name, tensor.spec.dtype, shape, alone, {}, files);
}

}  // namespace

StoredValues stored_values(const LogicalTensor& shards, std::span<const index::ValueShift> own,
                           std::span<const i64> whole, std::span<const exec::SourceFile> files) {
  StoredValues result;
  result.shifts.resize(own.size());
  for (size_t h = 0; h < own.size(); ++h) {
    const index::AxisMap map = shards.side.holders->region(static_cast<int>(h)).front();
    const std::vector<i64> stored = values_of(shards, h, files);
    const Misses as_unsharded = misses_of(map, stored, whole, {});
    const Misses as_own = misses_of(map, stored, whole, own[h]);
    const bool is_own = as_own.count < as_unsharded.count;
    if (is_own) result.shifts[h] = own[h];
    const Misses& misses = is_own ? as_own : as_unsharded;
    if (misses.count == 0) continue;
    OtherValue other = misses.first;
    other.holder = h;
    other.own = plus_shift(other.unsharded, own[h], other.element);
    result.others.push_back(other);
  }
  const auto is_plain = [](const index::ValueShift& shift) { return shift.is_plain(); };
  if (std::ranges::all_of(result.shifts, is_plain)) result.shifts.clear();
  return result;
}

}  // namespace shardtool::api
