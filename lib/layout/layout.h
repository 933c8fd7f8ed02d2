#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/shape.h"
#include "lib/index/holder_set.h"
#include "lib/index/region.h"
#include "lib/layout/axis_expr.h"
#include "lib/mesh/mesh.h"

namespace shardtool::layout {

/// What happens to a stored index that stands for a block of logical ones when a cut falls inside
/// the block.
enum class Straddling {
  kRefuse,
  kShare,   ///< every device that has a part of the block has it
  kRefine,  ///< the block falls into equal smaller ones, each with a copy of what was stored
};

/// What the indices of a device that no element of the tensor sits at hold.
enum class Fill { kZero, kRepeatLast };

/// How one stored axis is cut. The expression counts logical indices; one stored index stands for
/// `granularity` of them (int4 in int32: 8; a 128-block scale: 128; plain: 1), so that the stored
/// map is coarsen(expr, granularity).
struct LayoutAxis {
  AxisExpr expr;
  i64 granularity = 1;
  std::string
      logical;  ///< the logical axis' name for messages, e.g. "heads*head_dim"; may be empty
  Straddling straddling = Straddling::kRefuse;
  Fill fill = Fill::kZero;
};

/// A number captured from a tensor's name (layer, expert): the tensor is index `index` of a logical
/// axis, and lives where that axis' map contains it.
struct IndexAxis {
  std::string logical;
  AxisExpr expr;
  i64 index = 0;
};

/// Who holds what of one tensor.
///
/// L1 one axis per tensor axis; its stored size is the extent of the tensor axis
/// L2 complete: the images of all devices cover the tensor
/// L3 a mesh axis (or a part of one) cuts at most one axis; unused mesh axes are replicas
/// L4 replicas hold equal data: a property of the data, which `check` proves
class Layout {
 public:
  /// Throws kShapeMismatch (L1), kStrategy (L2, a granularity below 1), kMeshAxisReused (L3),
  /// kBlockStraddle when a cut falls inside a block of a granularity, and whatever `evaluate`
  /// throws.
  Layout(mesh::Mesh mesh, Shape shape, std::vector<LayoutAxis> axes,
         std::vector<IndexAxis> index_axes = {});
  /// Everything on every device.
  static Layout replicated(mesh::Mesh mesh, const Shape& shape);

  const mesh::Mesh& mesh() const { return mesh_; }
  const Shape& shape() const { return shape_; }
  const std::vector<LayoutAxis>& axes() const { return axes_; }
  const std::vector<IndexAxis>& index_axes() const { return index_axes_; }

  /// What the device holds, or nothing when the tensor is not on it.
  std::optional<index::Region> region(i64 rank) const;
  /// What its padding repeats: regions over the same local extents whose images are outside
  /// region(rank), each a copy of elements that some device holds. Empty for padding of zeros.
  std::vector<index::Region> fills(i64 rank) const;
  /// Maps the stored indices of a device's axis to blocks of granularity / refinement logical
  /// indices. Each copy that kRefine makes has a block of its own.
  index::AxisMap blocks(i64 rank, size_t axis) const;
  /// How many smaller blocks a block of each axis falls into; 1 without kRefine.
  const std::vector<i64>& refinement() const { return refinement_; }
  /// The devices that hold it, ascending.
  const std::vector<i64>& ranks() const { return ranks_; }
  /// holders().region(i) belongs to the device ranks()[i].
  const index::HolderSet& holders() const { return holders_; }

  /// Whether any axis is cut, or only some devices hold the tensor.
  bool is_sharded() const;
  /// The first device that holds the tensor with an empty region and no fills, though the tensor is
  /// not empty.
  std::optional<i64> first_empty_shard() const;
  /// Whether every device has the same local extent of this axis.
  bool is_even(int axis) const;

 private:
  mesh::Mesh mesh_;
  Shape shape_;
  std::vector<LayoutAxis> axes_;
  std::vector<IndexAxis> index_axes_;
  std::vector<i64> refinement_;
  std::vector<i64> ranks_;
  index::HolderSet holders_;
};

/// "axis 0 'heads*head_dim'" or "axis 0".
std::string axis_name(const LayoutAxis& axis, size_t position);

}  // namespace shardtool::layout
