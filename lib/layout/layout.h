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

/// Policy for a cut inside the block of logical indices that one stored index represents.
enum class Straddling {
  kRefuse,
  kShare,   ///< every device with a part of the block gets the whole block
  kRefine,  ///< the block splits into equal smaller ones, each with a copy of the stored value
};

/// Content of the local indices of a device that hold no element of the tensor.
enum class Fill { kZero, kRepeatLast };

/// Cut of one stored axis. The expression counts logical indices; one stored index represents
/// `granularity` of them (int4 in int32: 8; a 128-block scale: 128; plain: 1), so the stored map is
/// coarsen(expr, granularity).
struct LayoutAxis {
  AxisExpr expr;
  i64 granularity = 1;
  std::string
      logical;  ///< the logical axis' name for messages, e.g. "heads*head_dim"; may be empty
  Straddling straddling = Straddling::kRefuse;
  Fill fill = Fill::kZero;
};

/// Number captured from a tensor's name (layer, expert): the tensor is index `index` of a logical
/// axis and is on the devices whose map of that axis contains it.
struct IndexAxis {
  std::string logical;
  AxisExpr expr;
  i64 index = 0;
  /// Further indices that are the same tensor: tied embeddings are on the devices of the first
  /// layer and on those of the last one.
  std::vector<i64> others = {};

  std::vector<i64> indices() const;
};

/// True if the device has index `index` of the axis.
bool has_index(const IndexAxis& axis, i64 index, const mesh::Mesh& mesh, i64 rank);

/// Distribution of one tensor over the devices of a mesh.
///
/// L1 one axis per tensor axis; its stored size is the extent of the tensor axis
/// L2 complete: the images of all devices cover the tensor
/// L3 a mesh axis (or a part of one) cuts at most one axis; unused mesh axes are replicas
/// L4 replicas hold equal data: a property of the data, which `check` proves
class Layout {
 public:
  /// Throws kShapeMismatch (L1), kStrategy (L2, a granularity below 1), kMeshAxisReused (L3),
  /// kBlockStraddle when a cut falls inside a block of a granularity, and the errors of `evaluate`.
  Layout(mesh::Mesh mesh, Shape shape, std::vector<LayoutAxis> axes,
         std::vector<IndexAxis> index_axes = {});
  /// The whole tensor on every device.
  static Layout replicated(mesh::Mesh mesh, const Shape& shape);

  const mesh::Mesh& mesh() const { return mesh_; }
  const Shape& shape() const { return shape_; }
  const std::vector<LayoutAxis>& axes() const { return axes_; }
  const std::vector<IndexAxis>& index_axes() const { return index_axes_; }

  /// Part that the device holds, or nullopt if the tensor is not on it.
  std::optional<index::Region> region(i64 rank) const;
  /// Regions that fill the padding with repeated elements: regions over the same local extents
  /// whose images are outside region(rank), each a copy of elements that some device holds. Empty
  /// for padding of zeros.
  std::vector<index::Region> fills(i64 rank) const;
  /// Maps the stored indices of a device's axis to blocks of granularity / refinement logical
  /// indices. Each copy that kRefine makes has a block of its own.
  index::AxisMap blocks(i64 rank, size_t axis) const;
  /// Number of smaller blocks into which a block of each axis splits; 1 without kRefine.
  const std::vector<i64>& refinement() const { return refinement_; }
  /// Devices that hold the tensor, ascending.
  const std::vector<i64>& ranks() const { return ranks_; }
  /// Holders of the tensor; holders().region(i) belongs to the device ranks()[i].
  const index::HolderSet& holders() const { return holders_; }

  /// True if any axis is cut or only some devices hold the tensor.
  bool is_sharded() const;
  /// First device that holds a non-empty tensor with an empty region and no fills.
  std::optional<i64> first_empty_shard() const;

 private:
  mesh::Mesh mesh_;
  Shape shape_;
  std::vector<LayoutAxis> axes_;
  std::vector<IndexAxis> index_axes_;
  std::vector<i64> refinement_;
  std::vector<i64> ranks_;
  index::HolderSet holders_;
};

/// Formats as "axis 0 'heads*head_dim'" or "axis 0".
std::string axis_name(const LayoutAxis& axis, size_t position);

}  // namespace shardtool::layout
