#include "lib/tutorial/placement.h"

#include <fmt/format.h>

namespace shardtool::tutorial {

Parts parts_of(std::string_view what, i64 n, int devices, layout::SplitRule rule) {
  Parts parts;
  for (int device = 0; device < devices; ++device) {
    parts.push_back(layout::part_of(n, devices, device, rule));
    if (parts.back().size() > 0) continue;
    throw Error(ErrorCode::kEmptyShard,
                fmt::format("rank {} of {} would hold none of the {} {}", device, devices, n, what))
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

MatrixPlacement replicated() {
  return {};
}

MatrixPlacement rows(Parts parts) {
  return {MatrixPlacement::Kind::kRows, std::move(parts), 0};
}

MatrixPlacement columns(Parts parts) {
  return {MatrixPlacement::Kind::kColumns, std::move(parts), 0};
}

MatrixPlacement owned_by(int device) {
  return {MatrixPlacement::Kind::kOwner, {}, device};
}

}  // namespace shardtool::tutorial
