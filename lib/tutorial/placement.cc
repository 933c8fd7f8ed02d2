#include "lib/tutorial/placement.h"

#include <fmt/format.h>

namespace shardtool::tutorial {

Parts parts_of(std::string_view what, i64 n, int devices, layout::SplitRule rule) {
  Parts parts;
  for (int device = 0; device < devices; ++device) {
    parts.push_back(layout::part_of(n, devices, device, rule));
    if (parts.back().size() > 0) continue;
    throw Error(ErrorCode::kEmptyShard, fmt::format("device {} of {} would hold none of the {} {}",
                                                    device, devices, n, what))
        .help(fmt::format("use at most {} devices", n));
  }
  return parts;
}

Parts parts_or_nothing(i64 n, int devices) {
  Parts parts;
  for (int device = 0; device < devices; ++device) {
    parts.push_back(layout::part_of(n, devices, device, layout::kBalanced));
  }
  return parts;
}

Placement replicated() {
  return {};
}

Placement rows(Parts parts) {
  return {Placement::Kind::kRows, std::move(parts), 0};
}

Placement columns(Parts parts) {
  return {Placement::Kind::kColumns, std::move(parts), 0};
}

Placement owned_by(int device) {
  return {Placement::Kind::kOwner, {}, device};
}

}  // namespace shardtool::tutorial
