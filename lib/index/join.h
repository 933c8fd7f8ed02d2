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

/// Intersection of a source segment and a destination segment of one axis. Inside it the holders
/// are the same at every index, on both sides.
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

/// Returns the cells of one axis that some destination covers, ascending. They point into the two
/// indices. p source segments without gaps and q destination segments give at most p + q - 1 cells.
std::vector<AxisCell> join_axis(const AxisIndex& sources, const AxisIndex& destinations);

/// Computes move(s -> d) = place(s)^-1 o place(d) for all holders of one tensor at once, as a tree
/// of cells. The first level has the cells of the first axis. Inside each cell, the next level has
/// the cells of the second axis, computed from only those holders that have the cell, and so on.
///
///     |  a  |    a    |      holders a and b share the first rows: two cells inside those rows,
///     |--b--|         |      one cell inside the others
///     |       c       |
///
/// A path of one cell per axis is a box. Every holder of a box stores it as one translation. A box
/// has at least one destination holder, and any number of source holders. Boxes are disjoint, and
/// every element of a destination is in a box.
///
/// n disjoint ranges of a row-major matrix, joined with the whole matrix, give at most 3 n boxes.
/// If all axes are cut independently, the boxes are the product of the cells of all axes.
class HolderJoin {
 public:
  /// Range of `holders_` or of the cells of an axis.
  struct Range {
    size_t first = 0;
    size_t count = 0;
  };
  struct Cell : AxisCell {
    Range sources;       ///< holders of the box that ends with this cell
    Range destinations;  ///< never empty
    Range inside;        ///< of the next axis' cells; empty after the last axis
  };
  /// Path of one cell per axis. A shorter path, of the first axes only, is allowed where a function
  /// says so.
  using Box = std::span<const Cell* const>;

  /// Keeps references to both. Requires equal shapes (kInternal). Throws kLimit if the tree would
  /// exceed kMostCells or kMostHolders.
  HolderJoin(const HolderSet& sources, const HolderSet& destinations);

  int rank() const { return sources_->rank(); }
  /// Returns the cells of the next axis inside a path of the axes before it, ascending.
  std::span<const Cell> inside(Box box) const;
  /// Returns all cells of an axis. Paths with the same holders share their cells, which are listed
  /// once.
  std::span<const Cell> cells(int axis) const { return cells_[static_cast<size_t>(axis)]; }
  /// Calls visit(box) for every box, last axis fastest. A scalar has one box, without cells.
  void for_each_box(const std::function<void(Box)>& visit) const;

  /// Returns the first holder of each group of replicas that has the box, ascending. For a shorter
  /// path: that has the path's cells, and so some of their elements.
  std::span<const int> sources(Box box) const;
  std::span<const int> destinations(Box box) const;
  /// Like the two above, for the path that ends with this cell.
  std::span<const int> sources(const Cell& cell) const { return holders(cell.sources); }
  std::span<const int> destinations(const Cell& cell) const { return holders(cell.destinations); }
  /// Returns the local indices of the box's first element in one of its holders.
  std::vector<i64> local_in_source(Box box, int holder) const;
  std::vector<i64> local_in_destination(Box box, int holder) const;

  /// A group of replicas that hold a box, ascending, perhaps empty; and the local indices of the
  /// box's first element, which are the same in all of them.
  struct Located {
    std::span<const int> holders;
    std::vector<i64> local;
  };
  /// Returns the first source holder of the box and its replicas.
  Located source_of(Box box) const;
  /// Returns the destinations of the box, one entry per group of replicas.
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
  /// Joined axes by key: the map numbers of the sources, then -1, then those of the destinations.
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
