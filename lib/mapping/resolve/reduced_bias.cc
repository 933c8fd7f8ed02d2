#include "lib/mapping/resolve/reduced_bias.h"

#include <fmt/format.h>

#include <bit>

#include "lib/base/error.h"
#include "lib/layout/gathered.h"

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

/// The whole axis on the first part along `over`, and as much padding on the others.
layout::AxisExpr padded_elsewhere(i64 n, const mesh::Over& over, i64 parts) {
  std::vector<i64> boundaries(static_cast<size_t>(parts) + 1, n);
  boundaries.front() = 0;
  return layout::pad(layout::cuts(std::move(boundaries), over));
}

}  // namespace

BiasDecision first_and_zeros(std::shared_ptr<const Layout> layout) {
  const mesh::Mesh& mesh = layout->mesh();
  const mesh::Over over{{"tp"}};
  const bool is_alone =
      !mesh.has_axis("tp") || extent(mesh, over) == 1 || is_cut_along(*layout, "tp");
  const auto whole = std::ranges::find_if(
      layout->axes(), [](const layout::LayoutAxis& axis) { return !axis.expr.is_sharded(); });
  if (is_alone || whole == layout->axes().end()) return {std::move(layout), {}, "after_reduction"};
  std::vector<layout::LayoutAxis> axes = layout->axes();
  layout::LayoutAxis& axis = axes[static_cast<size_t>(whole - layout->axes().begin())];
  axis.expr = padded_elsewhere(axis.expr.size(), over, extent(mesh, over));
  return {
      std::make_shared<const Layout>(mesh, layout->shape(), std::move(axes), layout->index_axes()),
      {},
      std::string(kFirstAndZeros)};
}

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
