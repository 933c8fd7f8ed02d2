#include "lib/layout/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lib/base/error.h"
#include "lib/index/axis_index.h"

namespace shardtool::layout {
namespace {

using index::AxisMap;
using index::Piece;
using mesh::AxisRef;
using mesh::Mesh;

/// Mesh axes that cut one axis of a tensor, and its name for messages.
struct Cut {
  std::string where;
  std::vector<AxisRef> refs;
};

/// Returns how two axes can share the devices of a mesh axis. Of a prime number of devices there
/// are no two parts.
std::string ways_out(const Mesh& mesh, const std::string& axis) {
  const std::string other = "lay one of the two over another mesh axis, or keep it whole (null)";
  const i64 size = mesh.axis(axis).size;
  i64 outer = 2;
  while (outer * outer <= size && size % outer != 0) ++outer;
  if (outer * outer > size) return other;
  return fmt::format("{}; or lay each over a part of its own, such as {} and {}", other,
                     to_string(AxisRef{axis, 1, outer}),
                     to_string(AxisRef{axis, outer, size / outer}));
}

void check_disjoint(const Mesh& mesh, const Cut& a, const Cut& b) {
  for (const AxisRef& x : a.refs) {
    for (const AxisRef& y : b.refs) {
      if (!overlaps(mesh, x, y)) continue;
      throw Error(
          ErrorCode::kMeshAxisReused,
          fmt::format("mesh axis '{}' cuts {} and {} of one tensor", x.axis, a.where, b.where))
          .help("a device has one index on a mesh axis: " + ways_out(mesh, x.axis));
    }
  }
}

/// Checks L3 inside an expression: both parts of a Nest or Product must use disjoint mesh axes.
void check_nests(const Mesh& mesh, const AxisExpr& expr, const std::string& where) {
  if (const auto* e = std::get_if<Nest>(&expr.node())) {
    check_disjoint(mesh, {where, axes_used(*e->of)}, {where + " again", e->over});
    check_nests(mesh, *e->of, where);
  } else if (const auto* product = std::get_if<Product>(&expr.node())) {
    check_disjoint(mesh, {where, axes_used(*product->outer)},
                   {where + " again", axes_used(*product->inner)});
    check_nests(mesh, *product->outer, where);
    check_nests(mesh, *product->inner, where);
  } else if (const auto* s = std::get_if<Scale>(&expr.node())) {
    check_nests(mesh, *s->of, where);
  } else if (const auto* p = std::get_if<Pad>(&expr.node())) {
    check_nests(mesh, *p->of, where);
  } else if (const auto* c = std::get_if<Concat>(&expr.node())) {
    for (const AxisExpr& section : c->sections) check_nests(mesh, section, where);
  }
}

/// Checks L3 inside each `over` list only, because sections of a Concat may share mesh axes.
void check_lists(const Mesh& mesh, const AxisExpr& expr, const std::string& where) {
  for (const Over& over : overs(expr)) {
    for (size_t i = 0; i < over.size(); ++i) {
      for (size_t j = i + 1; j < over.size(); ++j) {
        check_disjoint(mesh, {where, {over[i]}}, {where + " again", {over[j]}});
      }
    }
  }
}

void check_mesh_axes(const Mesh& mesh, const std::vector<LayoutAxis>& axes,
                     const std::vector<IndexAxis>& index_axes) {
  std::vector<Cut> seen;
  const auto add = [&](const AxisExpr& expr, const std::string& where) {
    check_lists(mesh, expr, where);
    check_nests(mesh, expr, where);
    const Cut cut{where, axes_used(expr)};
    for (const Cut& other : seen) check_disjoint(mesh, other, cut);
    seen.push_back(cut);
  };
  for (size_t a = 0; a < axes.size(); ++a) add(axes[a].expr, axis_name(axes[a], a));
  for (const IndexAxis& axis : index_axes) {
    add(axis.expr, fmt::format("index axis '{}'", axis.logical));
  }
}

void check_extents(const Shape& shape, const std::vector<LayoutAxis>& axes) {
  if (axes.size() != shape.size()) {
    throw Error(ErrorCode::kShapeMismatch,
                fmt::format("{} axes are given for a tensor of rank {} {}", axes.size(),
                            shape.size(), shardtool::to_string(shape)));
  }
  for (size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].granularity < 1) {
      throw Error(ErrorCode::kStrategy,
                  fmt::format("{} stores {} logical indices in one, expected 1 or more",
                              axis_name(axes[a], a), axes[a].granularity));
    }
    const i64 stored = ceil_div(axes[a].expr.size(), axes[a].granularity);
    if (stored == shape[a]) continue;
    const std::string blocks =
        axes[a].granularity == 1 ? "" : fmt::format(", in blocks of {}", axes[a].granularity);
    throw Error(ErrorCode::kShapeMismatch, fmt::format("{} has {} elements, the rule expects {}",
                                                       axis_name(axes[a], a), shape[a], stored))
        .note("shape", shardtool::to_string(shape))
        .note("expression", to_string(axes[a].expr) + blocks);
  }
}

Error cut_inside_block(const LayoutAxis& axis, size_t position, const AxisMap& logical, i64 rank) {
  const i64 cut = first_cut_inside_block(logical, axis.granularity).value_or(0);
  return Error(ErrorCode::kBlockStraddle,
               fmt::format("the cut of {} at index {} falls inside a block of {}: {} % {} = {}",
                           axis_name(axis, position), cut, axis.granularity, cut, axis.granularity,
                           cut % axis.granularity))
      .note("rank", fmt::format("{} holds {}", rank, to_string(logical)))
      .help("choose a mesh size whose cuts are multiples of the block, or keep this tensor whole");
}

/// Stored axis of a device, its blocks refined `refinement` times.
AxisMap stored_map(const LayoutAxis& axis, size_t position, const Mesh& mesh, i64 rank,
                   i64 refinement) {
  const AxisMap logical = evaluate(axis.expr, mesh, rank);
  if (axis.granularity == 1) return logical;
  if (auto stored = coarsen(logical, axis.granularity / refinement)) return *stored;
  const bool has_padding = logical.image_size() != logical.local_size();
  if (axis.straddling == Straddling::kShare && !has_padding)
    return touched(logical, axis.granularity);
  throw cut_inside_block(axis, position, logical, rank);
}

/// Number of equal parts per block that puts every cut between blocks.
i64 refinement_of(const LayoutAxis& axis, const Mesh& mesh) {
  if (axis.straddling != Straddling::kRefine) return 1;
  i64 block = axis.granularity;
  for (i64 rank = 0; rank < mesh.size(); ++rank) {
    const AxisMap logical = evaluate(axis.expr, mesh, rank);
    while (const auto cut = first_cut_inside_block(logical, block)) {
      const i64 smaller = std::gcd(block, *cut);
      block = smaller < block ? smaller : 1;
    }
  }
  return axis.granularity / block;
}

/// Part of a stored axis on a device: the map of its own indices, and one map per repeated copy.
struct AxisParts {
  AxisMap place;
  std::vector<AxisMap> fills;
};

AxisParts parts_of(const LayoutAxis& axis, AxisMap stored, i64 refinement) {
  if (refinement == 1) {
    AxisParts parts{std::move(stored), {}};
    for (i64 at = 0; axis.fill == Fill::kRepeatLast && at < parts.place.local_size(); ++at) {
      if (parts.place(at)) continue;
      const i64 last = parts.place.global_size() - 1;
      parts.fills.emplace_back(parts.place.local_size(), last + 1, std::vector{Piece{at, last, 1}});
    }
    return parts;
  }
  AxisParts parts{every_kth(stored, refinement, 0), {}};
  for (i64 copy = 1; copy < refinement; ++copy)
    parts.fills.push_back(every_kth(stored, refinement, copy));
  return parts;
}

bool has_image(const AxisMap& map, i64 index) {
  return std::ranges::any_of(map.pieces(), [&](const Piece& piece) {
    return piece.global <= index && index < piece.global_end();
  });
}

bool holds(const IndexAxis& axis, const Mesh& mesh, i64 rank) {
  const AxisMap map = evaluate(axis.expr, mesh, rank);
  return has_image(map, axis.index) ||
         std::ranges::any_of(axis.others, [&](i64 index) { return has_image(map, index); });
}

/// Checks L2 for one axis: the union of the maps' images is [0, n).
void check_complete(std::span<const AxisMap> maps, const LayoutAxis& axis, size_t position) {
  const index::AxisIndex covered(maps);
  i64 next = 0;
  for (const auto& segment : covered.segments()) {
    if (segment.begin != next) break;
    next = segment.end;
  }
  const i64 n = maps.empty() ? 0 : maps.front().global_size();
  if (next == n) return;
  throw Error(ErrorCode::kStrategy, fmt::format("no rank holds index {} of {} ({} indices)", next,
                                                axis_name(axis, position), n))
      .note("expression", to_string(axis.expr));
}

}  // namespace

std::vector<i64> IndexAxis::indices() const {
  std::vector<i64> all{index};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

bool has_index(const IndexAxis& axis, i64 index, const Mesh& mesh, i64 rank) {
  return has_image(evaluate(axis.expr, mesh, rank), index);
}

std::string axis_name(const LayoutAxis& axis, size_t position) {
  return axis.logical.empty() ? fmt::format("axis {}", position)
                              : fmt::format("axis {} '{}'", position, axis.logical);
}

Layout::Layout(mesh::Mesh mesh, Shape shape, std::vector<LayoutAxis> axes,
               std::vector<IndexAxis> index_axes)
    : mesh_(std::move(mesh)),
      shape_(std::move(shape)),
      axes_(std::move(axes)),
      index_axes_(std::move(index_axes)),
      holders_(shape_) {
  check_extents(shape_, axes_);
  check_mesh_axes(mesh_, axes_, index_axes_);
  for (const LayoutAxis& axis : axes_) refinement_.push_back(refinement_of(axis, mesh_));
  for (i64 rank = 0; rank < mesh_.size(); ++rank) {
    if (const auto held = region(rank)) {
      holders_.add(*held);
      ranks_.push_back(rank);
    }
  }
  if (ranks_.empty()) {
    throw Error(ErrorCode::kStrategy,
                "no rank holds the tensor: its index is outside every rank's shard");
  }
  for (size_t a = 0; a < axes_.size(); ++a) {
    check_complete(holders_.maps(static_cast<int>(a)), axes_[a], a);
  }
}

Layout Layout::replicated(mesh::Mesh mesh, const Shape& shape) {
  std::vector<LayoutAxis> axes;
  for (const i64 extent : shape) axes.push_back({whole(extent), 1, {}});
  return Layout(std::move(mesh), shape, std::move(axes));
}

std::optional<index::Region> Layout::region(i64 rank) const {
  for (const IndexAxis& axis : index_axes_) {
    if (!holds(axis, mesh_, rank)) return std::nullopt;
  }
  index::Region region;
  for (size_t a = 0; a < axes_.size(); ++a) {
    AxisMap stored = blocks(rank, a);
    region.push_back(refinement_[a] == 1 ? std::move(stored)
                                         : every_kth(stored, refinement_[a], 0));
  }
  return region;
}

index::AxisMap Layout::blocks(i64 rank, size_t axis) const {
  return stored_map(axes_[axis], axis, mesh_, rank, refinement_[axis]);
}

std::vector<index::Region> Layout::fills(i64 rank) const {
  const bool repeats = std::any_of(axes_.begin(), axes_.end(), [](const LayoutAxis& axis) {
    return axis.fill == Fill::kRepeatLast;
  });
  const bool refines =
      std::any_of(refinement_.begin(), refinement_.end(), [](i64 parts) { return parts > 1; });
  if (!repeats && !refines) return {};        // true for nearly every layout
  std::vector<index::Region> regions = {{}};  // the first one is the place itself
  for (size_t a = 0; a < axes_.size(); ++a) {
    const AxisParts parts = parts_of(axes_[a], blocks(rank, a), refinement_[a]);
    std::vector<index::Region> longer;
    for (const index::Region& region : regions) {
      longer.push_back(region);
      longer.back().push_back(parts.place);
      for (const AxisMap& fill : parts.fills) {
        longer.push_back(region);
        longer.back().push_back(fill);
      }
    }
    regions = std::move(longer);
  }
  regions.erase(regions.begin());
  return regions;
}

bool Layout::is_sharded() const {
  const bool cut = std::any_of(axes_.begin(), axes_.end(),
                               [](const LayoutAxis& axis) { return axis.expr.is_sharded(); });
  return cut || static_cast<i64>(ranks_.size()) != mesh_.size();
}

std::optional<i64> Layout::first_empty_shard() const {
  if (element_count(shape_).value_or(1) == 0) return std::nullopt;
  for (int holder = 0; holder < holders_.size(); ++holder) {
    const i64 rank = ranks_[static_cast<size_t>(holder)];
    if (image_size(holders_.region(holder)) == 0 && fills(rank).empty()) return rank;
  }
  return std::nullopt;
}

}  // namespace shardtool::layout
