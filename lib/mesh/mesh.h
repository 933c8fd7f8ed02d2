#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool {
class JsonWriter;
}

namespace shardtool::mesh {

/// One named axis of a mesh; size >= 1.
struct MeshAxis {
  std::string name;
  i64 size = 1;

  bool operator==(const MeshAxis&) const = default;
};

/// Upper limit of devices. Tables have a row per device, so a number in a file must not set their
/// size.
inline constexpr i64 kMaxDevices = i64{1} << 20;

/// Index of a device on every axis of its mesh.
using Coordinate = std::vector<i64>;

/// Named grid of devices. Ranks are row-major over the axes, the first axis slowest, unless the
/// mesh lists the ranks of its cells:
///
///     mesh (dp 2, tp 4)      tp 0  1  2  3        with the order 0,2,4,6,1,3,5,7     tp 0  1  2  3
///                     dp 0   |  0  1  2  3                                   dp 0   |  0  2  4  6
///                     dp 1   |  4  5  6  7                                   dp 1   |  1  3  5  7
///
/// M1 names are unique and not empty  M2 sizes are >= 1  M3 their product is at most kMaxDevices
/// M4 the listed ranks are a permutation of 0 to size() - 1
class Mesh {
 public:
  /// One device, no axes.
  Mesh() = default;
  /// Throws kMesh when M1 to M3 do not hold.
  explicit Mesh(std::vector<MeshAxis> axes);
  /// A mesh whose cells, in row-major order, have the listed ranks; an empty list is 0, 1, 2, ...
  /// Throws kMesh when M1 to M4 do not hold.
  Mesh(std::vector<MeshAxis> axes, std::vector<i64> device_order);

  std::span<const MeshAxis> axes() const { return axes_; }
  /// Ranks of the cells in row-major order; empty when they are 0, 1, 2, ...
  std::span<const i64> device_order() const { return device_order_; }
  /// Number of devices: the product of the sizes.
  i64 size() const { return size_; }
  /// Throws kUnknownName (with near misses) if no axis has this name.
  const MeshAxis& axis(std::string_view name) const;
  bool has_axis(std::string_view name) const;
  /// Index of the device with this rank on one axis. Throws kUnknownName as `axis` does. This and
  /// the two below require 0 <= rank < size() and coordinates inside the mesh.
  i64 index_on(std::string_view name, i64 rank) const;
  Coordinate coordinate(i64 rank) const;
  /// Inverse of `coordinate`.
  i64 rank(const Coordinate& coordinate) const;

  bool operator==(const Mesh&) const = default;

 private:
  size_t position(std::string_view name) const;
  /// Row-major number of the cell that has this rank.
  i64 cell(i64 rank) const { return cells_.empty() ? rank : cells_[static_cast<size_t>(rank)]; }

  std::vector<MeshAxis> axes_;
  std::vector<i64> device_order_;
  std::vector<i64> cells_;  ///< inverse of device_order_
  i64 size_ = 1;
};

/// Formats as "tp=4", "ep=2,tp=4" or "tp=4:0,2,1,3", with the ranks of its cells; "one device"
/// without axes.
std::string to_string(const Mesh& mesh);
/// Writes the keys "mesh" and, if its cells are listed, "device_order" of an open object.
void write_mesh(JsonWriter& json, const Mesh& mesh);
/// Inverse of to_string for command lines. Throws kUsage, and kMesh as the constructor does.
Mesh parse_mesh(std::string_view text);

}  // namespace shardtool::mesh
