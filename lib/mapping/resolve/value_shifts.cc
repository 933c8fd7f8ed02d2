#include "lib/mapping/resolve/value_shifts.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"

namespace shardtool::mapping {
namespace {

/// Subtracts the device's first group number. `map` is its part of the grouped axis.
index::ValueShift groups_from_zero(const index::AxisMap& map, i64 group) {
  if (map.pieces().size() > 1) {
    throw Error(ErrorCode::kStrategy, "a device has several runs of the axis that is in groups")
        .note("holds", to_string(map))
        .help("cut that axis in one run per device");
  }
  if (map.pieces().empty()) return {};
  const index::Piece& run = map.pieces().front();
  const i64 first = run.global / group;
  return {{-first}, ceil_div(run.global_end(), group) - first};
}

i64 group_size(const CompanionSpec& spec, const layout::Layout& member,
               const CompanionSizes& sizes) {
  return granularity_of({std::nullopt, spec.group, std::nullopt, false}, member.shape()[0], sizes);
}

index::ValueShift shape_of_part(const layout::Layout& leader, i64 rank) {
  index::ValueShift shift;
  const auto region = leader.region(rank);
  for (size_t a = 0; region && a < region->size(); ++a) {
    shift.addends.push_back((*region)[a].local_size() - leader.shape()[a]);
  }
  return shift;
}

}  // namespace

std::vector<index::ValueShift> value_shifts(const CompanionSpec& spec, const layout::Layout& leader,
                                            const layout::Layout& member,
                                            const CompanionSizes& sizes) {
  std::vector<index::ValueShift> shifts;
  if (spec.values == MemberValues::kPlain) return shifts;
  for (const i64 rank : member.ranks()) {
    if (spec.values == MemberValues::kLocalShape) {
      shifts.push_back(shape_of_part(leader, rank));
      continue;
    }
    const index::AxisMap map = member.region(rank)->front();
    shifts.push_back(groups_from_zero(map, group_size(spec, member, sizes)));
  }
  return shifts;
}

bool cuts_groups(const CompanionSpec& spec, const layout::Layout& member,
                 const CompanionSizes& sizes) {
  if (spec.values != MemberValues::kGroupIndices) return false;
  const i64 group = group_size(spec, member, sizes);
  const auto is_inside = [&](i64 index) {
    return index % group != 0 && index != member.shape()[0];
  };
  return std::ranges::any_of(member.ranks(), [&](i64 rank) {
    const index::AxisMap map = member.region(rank)->front();
    return std::ranges::any_of(map.pieces(), [&](const index::Piece& run) {
      return is_inside(run.global) || is_inside(run.global_end());
    });
  });
}

}  // namespace shardtool::mapping
