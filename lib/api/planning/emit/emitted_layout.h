#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/base/error.h"
#include "lib/base/tensor_spec.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/mesh/mesh.h"
#include "lib/plan/holders.h"

namespace shardtool::api {

/// A tensor of a layout, for other programs.
struct EmittedTensor {
  TensorSpec spec;
  plan::Holders holders;  ///< of devices; the layout must outlive it
};

/// A layout, for other programs.
struct EmittedLayout {
  mesh::Mesh mesh;
  std::vector<EmittedTensor> tensors;  ///< sorted by name
};

/// Returns the layout of a resolution of these specs, which must outlive it.
EmittedLayout emitted_layout(const mapping::Resolution& resolution,
                             std::span<const TensorSpec> specs);

/// Returns the layout of shards, which must outlive it. Requires source.is_sharded().
EmittedLayout emitted_shards(const LogicalCheckpoint& source);
/// Returns the name of a checkpoint's folder or file.
std::string model_name(const LogicalCheckpoint& source);

/// The mesh coordinates of the devices that hold a tensor, which form a box of the mesh.
///
/// C1 ranks() is the product of coordinates(axis) over all axes, in row-major order
class HoldingDevices {
 public:
  /// Throws kUnsupported with the tensor's name if the devices are no box of the mesh.
  HoldingDevices(const mesh::Mesh& mesh, const EmittedTensor& tensor, std::string_view program);

  /// Holder (an index into the tensor's) by position in the box.
  const std::vector<int>& holders() const { return holders_; }
  const std::vector<i64>& ranks() const { return ranks_; }
  const std::vector<i64>& coordinates(size_t axis) const { return coordinates_[axis]; }
  i64 count(size_t axis) const { return static_cast<i64>(coordinates_[axis].size()); }
  /// Index into coordinates(axis) of a position in the box.
  i64 index(size_t position, size_t axis) const;
  /// Returns the tensor axis of which devices have different parts along a mesh axis; nullopt if
  /// there is none. Throws kUnsupported if there are several.
  std::optional<size_t> cut_along(size_t axis) const;

 private:
  const mesh::Mesh& mesh_;
  const EmittedTensor& tensor_;
  std::string_view program_;
  std::vector<std::vector<i64>> coordinates_;
  std::vector<int> holders_;
  std::vector<i64> ranks_;
};

/// Error for a tensor that a program cannot express.
Error inexpressible(std::string_view program, const TensorSpec& tensor, const std::string& why);

}  // namespace shardtool::api
