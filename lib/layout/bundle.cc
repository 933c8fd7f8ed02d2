#include "lib/layout/bundle.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"

namespace shardtool::layout {

Layout member_layout(const Layout& leader, const BundleMember& member, Straddling straddling) {
  std::vector<LayoutAxis> axes;
  for (size_t a = 0; a < member.axes.size(); ++a) {
    const MemberAxis& axis = member.axes[a];
    if (!axis.follows) {
      axes.push_back({whole(member.shape[a]), 1, {}});
      continue;
    }
    if (*axis.follows >= leader.axes().size()) {
      throw Error(ErrorCode::kShapeMismatch,
                  fmt::format("a companion follows axis {} of a tensor of rank {}", *axis.follows,
                              leader.axes().size()));
    }
    const LayoutAxis& led = leader.axes()[*axis.follows];
    const auto granularity = checked_mul(led.granularity, axis.granularity);
    if (!granularity)
      throw Error(ErrorCode::kLimit, "a companion's block has 2^63 elements or more");
    axes.push_back({led.expr, *granularity, led.logical,
                    axis.is_packed ? Straddling::kRefuse : straddling, led.fill});
  }
  return Layout(leader.mesh(), member.shape, std::move(axes), leader.index_axes());
}

BundleMember block_scale(const Shape& shape, const std::vector<i64>& block) {
  if (shape.size() != block.size()) {
    throw Error(ErrorCode::kShapeMismatch,
                fmt::format("a block of {} sizes does not fit a scale of shape {}", block.size(),
                            shardtool::to_string(shape)));
  }
  BundleMember member{shape, {}};
  for (size_t a = 0; a < shape.size(); ++a) member.axes.push_back({a, block[a]});
  return member;
}

BundleMember per_index(const Shape& shape, size_t leader_axis) {
  BundleMember member{shape, {}};
  const auto longest = std::max_element(shape.begin(), shape.end()) - shape.begin();
  for (size_t a = 0; a < shape.size(); ++a) {
    const bool follows = static_cast<std::ptrdiff_t>(a) == longest;
    member.axes.push_back({follows ? std::optional(leader_axis) : std::nullopt, 1});
  }
  return member;
}

BundleMember per_tensor(const Shape& shape) {
  return {shape, std::vector<MemberAxis>(shape.size())};
}

BundleMember same_axes(const Shape& shape) {
  return block_scale(shape, std::vector<i64>(shape.size(), 1));
}

}  // namespace shardtool::layout
