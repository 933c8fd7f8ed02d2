#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::mesh {

/// One named axis of a mesh; size >= 1.
struct MeshAxis {
  std::string name;
  i64 size = 1;

  bool operator==(const MeshAxis&) const = default;
};

/// Tables have a row per device, so that a number in a file must not ask for any number of them.
inline constexpr i64 kMaxDevices = i64{1} << 20;

/// A device's index on every axis of its mesh.
using Coordinate = std::vector<i64>;

/// A named grid of devices. Ranks are row-major over the axes, the first axis slowest:
///
///     mesh (dp 2, tp 4)      tp 0  1  2  3
///                     dp 0   |  0  1  2  3
///                     dp 1   |  4  5  6  7
///
/// M1 names are unique and not empty  M2 sizes are >= 1  M3 their product is at most kMaxDevices
class Mesh {
 public:
  /// One device, no axes.
  Mesh() = default;
  /// Throws kMesh when M1 to M3 do not hold.
  explicit Mesh(std::vector<MeshAxis> axes);

  std::span<const MeshAxis> axes() const { return axes_; }
  /// The number of devices: the product of the sizes.
  i64 size() const { return size_; }
  /// Throws kUnknownName (with near misses) when no axis has this name.
  const MeshAxis& axis(std::string_view name) const;
  bool has_axis(std::string_view name) const;
  /// The index on one axis of the device with this rank.
  i64 index_on(std::string_view name, i64 rank) const;
  Coordinate coordinate(i64 rank) const;
  i64 rank(const Coordinate& coordinate) const;

  bool operator==(const Mesh&) const = default;

 private:
  size_t position(std::string_view name) const;

  std::vector<MeshAxis> axes_;
  i64 size_ = 1;
};

/// "tp=4" or "ep=2,tp=4"; "one device" without axes.
std::string to_string(const Mesh& mesh);
/// The inverse of to_string for command lines. Throws kUsage, and kMesh as the constructor does.
Mesh parse_mesh(std::string_view text);

}  // namespace shardtool::mesh
