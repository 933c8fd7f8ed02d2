#pragma once

#include <vector>

#include "lib/index/value_shift.h"
#include "lib/layout/layout.h"
#include "lib/mapping/match/companions.h"

namespace shardtool::mapping {

/// Returns the shifts of a companion's values, one per device that holds it (`member.ranks()`);
/// empty if its values are plain. Throws kStrategy if a device has several runs of the grouped
/// axis.
std::vector<index::ValueShift> value_shifts(const CompanionSpec& spec, const layout::Layout& leader,
                                            const layout::Layout& member,
                                            const CompanionSizes& sizes);

/// True if a device's part of group numbers begins or ends inside a group.
bool cuts_groups(const CompanionSpec& spec, const layout::Layout& member,
                 const CompanionSizes& sizes);

}  // namespace shardtool::mapping
