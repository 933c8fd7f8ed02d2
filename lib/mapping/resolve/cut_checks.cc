#include "lib/mapping/resolve/cut_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "lib/base/error.h"

namespace shardtool::mapping {
namespace {

using index::AxisMap;
using index::Piece;

/// Returns the number of local indices of each part of an expression.
std::vector<i64> extents_by_part(const layout::AxisExpr& expr, const mesh::Mesh& mesh) {
  const auto overs = layout::overs(expr);
  const mesh::Over over = overs.empty() ? mesh::Over{} : overs.front();
  constexpr i64 kUnknown = -1;
  std::vector<i64> sizes(static_cast<size_t>(extent(mesh, over)), kUnknown);
  size_t known = 0;
  for (i64 rank = mesh.size() - 1; known < sizes.size(); --rank) {
    i64& size = sizes[static_cast<size_t>(index_along(mesh, over, rank))];
    if (size != kUnknown) continue;
    size = evaluate(expr, mesh, rank).local_size();
    ++known;
  }
  return sizes;
}

std::vector<i64> divisors(i64 n) {
  constexpr i64 kLargest = 1024;
  std::vector<i64> found;
  for (i64 d = 1; d <= std::min(n, kLargest); ++d) {
    if (n % d == 0) found.push_back(d);
  }
  return found;
}

bool on_bytes(i64 elements, int element_bits) {
  return elements % 8 * element_bits % 8 == 0;
}

/// Returns true if every contiguous run of a region begins and ends at a byte, both in the tensor
/// and in the shard. Runs are along the innermost axis that is cut. If other axes precede it, its
/// whole extent must be a number of bytes, too.
bool is_byte_aligned(const index::Region& region, int element_bits) {
  i64 stride = 1;
  size_t cut = region.size();
  while (cut > 0 && region[cut - 1].is_identity())
    stride = stride * (region[--cut].global_size() % 8) % 8;
  if (cut == 0) return true;
  const AxisMap& axis = region[cut - 1];
  const bool runs =
      std::all_of(axis.pieces().begin(), axis.pieces().end(), [&](const Piece& piece) {
        return on_bytes(piece.global % 8 * stride, element_bits) &&
               on_bytes(piece.local % 8 * stride, element_bits) &&
               on_bytes(piece.size % 8 * stride, element_bits);
      });
  const bool only_row = cut == 1;
  return runs && (only_row || (on_bytes(axis.global_size() % 8 * stride, element_bits) &&
                               on_bytes(axis.local_size() % 8 * stride, element_bits)));
}

/// Throws kEmptyShard if a device would hold an empty region of the tensor, or if a part of an
/// index axis would have no index.
void refuse_empty_shards(const layout::Layout& layout) {
  for (const layout::IndexAxis& axis : layout.index_axes()) {
    const auto sizes = extents_by_part(axis.expr, layout.mesh());
    const auto empty = std::find(sizes.begin(), sizes.end(), 0);
    if (empty == sizes.end()) continue;
    throw Error(ErrorCode::kEmptyShard,
                fmt::format("shard {} of axis '{}' would be empty: {} indices over {} ranks",
                            empty - sizes.begin(), axis.logical, axis.expr.size(), sizes.size()));
  }
  const auto rank = layout.first_empty_shard();
  if (!rank) return;
  Error e(ErrorCode::kEmptyShard, fmt::format("rank {} would hold nothing of the tensor", *rank));
  for (size_t a = 0; a < layout.axes().size(); ++a) {
    const layout::LayoutAxis& axis = layout.axes()[a];
    if (!axis.expr.is_sharded()) continue;
    e.note("cut", fmt::format("{} of {} as {}", axis_name(axis, a), axis.expr.size(),
                              to_string(axis.expr)));
  }
  throw e;
}

/// Throws kSubByteCut if a contiguous run on some device does not begin and end at a byte.
void refuse_sub_byte_cuts(const layout::Layout& layout, Dtype dtype) {
  if (bits(dtype) % 8 == 0) return;
  for (const i64 rank : layout.ranks()) {
    const auto region = layout.region(rank);
    if (!region || is_byte_aligned(*region, bits(dtype))) continue;
    Error e(ErrorCode::kSubByteCut,
            fmt::format("a cut of {} elements of {} bits falls inside a byte", to_string(dtype),
                        bits(dtype)));
    for (size_t a = 0; a < region->size(); ++a) {
      e.note(axis_name(layout.axes()[a], a),
             fmt::format("rank {} holds {}", rank, index::to_string((*region)[a])));
    }
    throw e.help("choose a mesh size whose cuts fall on whole bytes, or replicate the tensor");
  }
}

bool pads(std::span<const AxisMap> maps) {
  return std::any_of(maps.begin(), maps.end(),
                     [](const AxisMap& map) { return map.image_size() != map.local_size(); });
}

/// Returns true if devices that hold the same stored index have different parts of its block.
bool shares(std::span<const AxisMap> maps, i64 extent) {
  std::vector<AxisMap> distinct;
  for (const AxisMap& map : maps) {
    if (std::find(distinct.begin(), distinct.end(), map) == distinct.end()) distinct.push_back(map);
  }
  const i64 held =
      std::accumulate(distinct.begin(), distinct.end(), i64{0},
                      [](i64 sum, const AxisMap& map) { return sum + map.image_size(); });
  return held > extent;
}

}  // namespace

std::vector<i64> part_sizes(const UnitCut& cut, const mesh::Mesh& mesh) {
  return extents_by_part(cut.units, mesh);
}

i64 most_parts(const layout::AxisExpr& expr) {
  if (const auto* scaled = std::get_if<layout::Scale>(&expr.node())) return most_parts(*scaled->of);
  if (const auto* dealt = std::get_if<layout::Owners>(&expr.node())) {
    const auto last = std::find_if(dealt->owned.rbegin(), dealt->owned.rend(),
                                   [](const auto& units) { return !units.empty(); });
    return dealt->owned.rend() - last;
  }
  const auto* sections = std::get_if<layout::Concat>(&expr.node());
  if (sections == nullptr) return expr.size();
  i64 least = expr.size();
  for (const layout::AxisExpr& section : sections->sections) {
    if (section.is_sharded()) least = std::min(least, most_parts(section));
  }
  return least;
}

Error uneven_cut_error(const UnitCut& cut, const std::vector<i64>& sizes, bool must_be_even) {
  const auto* groups = std::get_if<layout::Scale>(&cut.units.node());
  const i64 n = groups == nullptr ? cut.units.size() : groups->of->size();
  const i64 parts = static_cast<i64>(sizes.size());
  std::string what = cut.name;
  if (groups != nullptr) what = fmt::format("groups of {} {}", groups->unit, cut.name);
  if (cut.is_of_strategy) what = fmt::format("{} of {}", n == 1 ? "unit" : "units", cut.name);
  const auto overs = layout::overs(cut.units);
  Error e(ErrorCode::kNotDivisible,
          fmt::format("{} {} cannot be split evenly over mesh axis \"{}\" (size {}): {} % {} = {}",
                      n, what, overs.empty() ? "nothing" : to_string(overs.front()), parts, n,
                      parts, n % parts));
  const std::string sizes_that_divide =
      fmt::format("use a size that divides {} ({})", n, fmt::join(divisors(n), " "));
  if (must_be_even) return std::move(e.help(sizes_that_divide));
  return std::move(
      e.help(fmt::format("{}, or allow uneven shards with \"uneven\": \"balanced\" -> {}",
                         sizes_that_divide, fmt::join(sizes, "+"))));
}

std::string sum_text(const std::vector<i64>& sizes) {
  constexpr size_t kShown = 16;
  const auto shown = sizes.begin() + static_cast<std::ptrdiff_t>(std::min(sizes.size(), kShown));
  return fmt::format("{}{}", fmt::join(sizes.begin(), shown, "+"),
                     shown == sizes.end() ? "" : "+...");
}

UnitRuns runs_of(const UnitCut& cut) {
  i64 together = 1;
  const layout::AxisExpr* of = &cut.units;
  while (const auto* scaled = std::get_if<layout::Scale>(&of->node())) {
    together *= scaled->unit;
    of = scaled->of.get();
  }
  return {cut.units.size(), std::max(together, cut.together)};
}

std::string even_counts(UnitRuns runs, i64 parts) {
  // With a shorter run at the end, only one device has an equal share.
  const std::vector<i64> even =
      divisors(runs.units % runs.together == 0 ? runs.units / runs.together : 1);
  const auto above = std::lower_bound(even.begin(), even.end(), parts);
  std::vector<i64> nearest;
  if (above != even.begin()) nearest.push_back(*std::prev(above));
  if (above != even.end()) nearest.push_back(*above);
  return fmt::format("{}{} divides over {} {}", runs.units,
                     runs.together == 1 ? "" : fmt::format(" in runs of {}", runs.together),
                     fmt::join(nearest, " or "), nearest.back() == 1 ? "device" : "devices");
}

std::shared_ptr<const layout::Layout> checked(layout::Layout layout, Dtype dtype,
                                              bool allow_empty_shards) {
  if (!allow_empty_shards) refuse_empty_shards(layout);
  refuse_sub_byte_cuts(layout, dtype);
  return std::make_shared<const layout::Layout>(std::move(layout));
}

i64 padded_size(const layout::AxisExpr& expr, const mesh::Mesh& mesh) {
  if (!expr.is_sharded()) return expr.size();
  if (const auto* scaled = std::get_if<layout::Scale>(&expr.node()))
    return scaled->unit * padded_size(*scaled->of, mesh);
  if (const auto* folded = std::get_if<layout::Product>(&expr.node()))
    return padded_size(*folded->outer, mesh) * padded_size(*folded->inner, mesh);
  if (const auto* sections = std::get_if<layout::Concat>(&expr.node())) {
    i64 sum = 0;
    for (const layout::AxisExpr& section : sections->sections) sum += padded_size(section, mesh);
    return sum;
  }
  if (std::holds_alternative<layout::Owners>(expr.node())) return expr.size();
  const auto sizes = extents_by_part(expr, mesh);
  return std::accumulate(sizes.begin(), sizes.end(), i64{0});
}

std::vector<std::string> transforms_of(const layout::Layout& layout) {
  std::vector<std::string> found;
  for (size_t a = 0; a < layout.axes().size(); ++a) {
    const layout::LayoutAxis& axis = layout.axes()[a];
    const auto maps = layout.holders().maps(static_cast<int>(a));
    const i64 parts = layout.refinement()[a];
    const std::string name = axis_name(axis, a);
    if (parts > 1) {
      found.push_back(fmt::format("refine {}: blocks of {} become {} of {}, each with a copy", name,
                                  axis.granularity, parts, axis.granularity / parts));
    } else if (pads(maps)) {
      const bool repeats = axis.fill == layout::Fill::kRepeatLast;
      found.push_back(fmt::format("pad {} from {} to {} with {}", name, axis.expr.size(),
                                  padded_size(axis.expr, layout.mesh()),
                                  repeats ? "copies of the last one" : "zeros"));
    } else if (axis.straddling == layout::Straddling::kShare && shares(maps, layout.shape()[a])) {
      found.push_back(
          fmt::format("share {}: a block of {} that a cut falls into is on both sides, whole", name,
                      axis.granularity));
    }
  }
  return found;
}

}  // namespace shardtool::mapping
