#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lib/index/axis_index.h"
#include "lib/index/holder_set.h"

namespace shardtool::index {

/// Interval of one axis with constant holders on both sides: the intersection of a source segment
/// and a destination segment.
///
///     sources       |-----s0-----|-----s1-----|
///     destinations     |------d0------|--d1--|
///     cells            |  s0 d0  |s1d0|s1 d1 |
struct AxisCell {
  i64 begin = 0;
  i64 size = 0;
  const AxisIndex::Segment* source = nullptr;       ///< null: no source holds it
  const AxisIndex::Segment* destination = nullptr;  ///< never null
};

/// Cells of one axis that the destinations cover, ascending; they point into the two indices. Two
/// sides with p and q segments give at most p + q - 1 cells if the sources have no gap.
std::vector<AxisCell> join_axis(const AxisIndex& sources, const AxisIndex& destinations);

/// Computes move(s -> d) = place(s)^-1 o place(d) for all holders of one tensor at once, as a tree:
/// the cells of the first axis, inside each of them the cells of the second axis over the holders
/// of that cell alone, and so on.
///
///     |  a  |    a    |      holders a and b share the first rows: two cells inside those rows,
///     |--b--|         |      one cell inside the others
///     |       c       |
///
/// A path of one cell per axis is a box that one or more destination holders have as a translation,
/// and none or more source holders. Boxes are disjoint, and every element that a destination has is
/// in one. n disjoint ranges of a row-major matrix meet the whole matrix in at most 3 n boxes; if
/// both sides are products of their axes, the boxes are the product of the axes' cells.
class HolderJoin {
 public:
  /// Range of a list of the join.
  struct Range {
    size_t first = 0;
    size_t count = 0;
  };
  struct Cell : AxisCell {
    Range sources;       ///< holders of the box that ends with this cell
    Range destinations;  ///< never empty
    Range inside;        ///< of the next axis' cells; empty after the last axis
  };
  /// One cell per axis; some functions take one that stops before the last axis.
  using Box = std::span<const Cell* const>;

  /// Keeps references to both. Requires equal shapes (kInternal). Throws kLimit if holders overlap
  /// in more ways than the memory should hold (kMostCells, kMostHolders).
  HolderJoin(const HolderSet& sources, const HolderSet& destinations);

  int rank() const { return sources_->rank(); }
  /// Cells of the next axis inside a box that stops before it, ascending.
  std::span<const Cell> inside(Box box) const;
  /// Cells of an axis inside any box. Boxes with the same holders share them: they are here once.
  std::span<const Cell> cells(int axis) const { return cells_[static_cast<size_t>(axis)]; }
  /// Calls visit(box) for every box, last axis fastest. A scalar has one box, without cells.
  void for_each_box(const std::function<void(Box)>& visit) const;

  /// First holder of each group of replicas that has the box, ascending; if the box stops before
  /// the last axis, that has some of it.
  std::span<const int> sources(Box box) const;
  std::span<const int> destinations(Box box) const;
  /// The same for the last cell of a box.
  std::span<const int> sources(const Cell& cell) const { return holders(cell.sources); }
  std::span<const int> destinations(const Cell& cell) const { return holders(cell.destinations); }
  /// Local indices of the box's first element in a holder that has the box.
  std::vector<i64> local_in_source(Box box, int holder) const;
  std::vector<i64> local_in_destination(Box box, int holder) const;

  /// Replicas that hold a box (ascending; may be empty) and, per axis, the local index of the box's
  /// first element in each of them.
  struct Located {
    std::span<const int> holders;
    std::vector<i64> local;
  };
  /// Source holders of the box: the first and its replicas.
  Located source_of(Box box) const;
  /// Destinations of the box, one entry per group of replicas.
  std::vector<Located> destinations_of(Box box) const;

  static constexpr size_t kMostCells = size_t{1} << 22;    ///< of one axis
  static constexpr size_t kMostHolders = size_t{1} << 23;  ///< over all cells

 private:
  /// Cells of one axis over some maps of each side.
  struct JoinedAxis {
    AxisIndex sources;
    AxisIndex destinations;
    std::vector<AxisCell> cells;
  };
  /// Holders with the number of their map of one axis.
  struct ByMap {
    std::vector<std::pair<int, int>> pairs;  ///< {map, holder}, ascending
    std::vector<int> maps;                   ///< each once, ascending
  };
  /// By the numbers of the maps of the sources, -1, and those of the destinations.
  using JoinedAxes = std::map<std::vector<int>, std::unique_ptr<JoinedAxis>>;

  std::span<const int> holders(Range range) const {
    return std::span(holders_).subspan(range.first, range.count);
  }
  Range add_all(const HolderSet& side);
  Range add_cells(size_t axis, Range sources, Range destinations);
  Range add_claimants(const ByMap& among, Range all, const AxisIndex::Segment* segment);
  ByMap by_map(const HolderSet& side, size_t axis, Range among) const;
  const JoinedAxis& joined(size_t axis, const ByMap& sources, const ByMap& destinations);
  void check_limits(size_t axis) const;

  const HolderSet* sources_;
  const HolderSet* destinations_;
  std::vector<JoinedAxes> axes_;
  std::vector<std::vector<Cell>> cells_;  ///< by axis; those inside one box follow each other
  std::vector<int> holders_;              ///< first of their replicas, ascending in each range
  Range all_sources_;
  Range all_destinations_;
};

/// Extents of a box, and their product.
Shape sizes(HolderJoin::Box box);
i64 elements(HolderJoin::Box box);

}  // namespace shardtool::index
