#include "lib/mapping/resolve/reduced_bias.h"

#include <fmt/format.h>

#include <bit>

#include "lib/base/error.h"

namespace shardtool::mapping {
namespace {

using layout::Layout;

mesh::Over reduced_over(const mesh::Mesh& mesh) {
  if (mesh.has_axis("tp")) return {{"tp"}};
  if (mesh.axes().size() == 1) return {{mesh.axes().front().name}};
  throw Error(ErrorCode::kStrategy,
              fmt::format("\"reduced_bias\" needs the mesh axis that is summed over, and the mesh "
                          "{} has no 'tp'",
                          to_string(mesh)))
      .help("name the axis tp, or say \"reduced_bias\": \"replicate\"");
}

/// Returns the same layout restricted to the devices of the first part along `over`.
std::shared_ptr<const Layout> on_first(const Layout& layout, const mesh::Over& over) {
  std::vector<std::vector<i64>> owned(static_cast<size_t>(extent(layout.mesh(), over)));
  owned.front() = {0};
  auto index = layout.index_axes();
  index.push_back({"reduced_bias", layout::owners(1, std::move(owned), over), 0});
  return std::make_shared<const Layout>(layout.mesh(), layout.shape(), layout.axes(),
                                        std::move(index));
}

}  // namespace

BiasDecision decide_reduced_bias(ReducedBias policy, std::shared_ptr<const Layout> layout) {
  if (policy == ReducedBias::kReplicate) return {std::move(layout), {}, "after_reduction"};
  const mesh::Over over = reduced_over(layout->mesh());
  if (policy == ReducedBias::kFirst) return {on_first(*layout, over), {}, "first_device"};
  const i64 devices = extent(layout->mesh(), over);
  if (!std::has_single_bit(static_cast<std::uint64_t>(devices))) {
    throw Error(ErrorCode::kStrategy,
                fmt::format("a bias divided by {} devices would not be exact", devices))
        .help("divide over 2, 4, 8, ... devices, or say \"reduced_bias\": \"first\"");
  }
  const i64 halvings = std::countr_zero(static_cast<std::uint64_t>(devices));
  index::ValueShift shift;
  shift.halvings = halvings;
  std::vector<index::ValueShift> shifts(layout->ranks().size(), shift);
  return {std::move(layout), halvings > 0 ? std::move(shifts) : std::vector<index::ValueShift>{},
          "divided"};
}

}  // namespace shardtool::mapping
