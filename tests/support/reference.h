#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <vector>

#include "lib/base/shape.h"
#include "lib/index/axis_map.h"
#include "lib/index/region.h"
#include "lib/index/strided_copy.h"
#include "lib/layout/axis_expr.h"
#include "lib/layout/layout.h"

/// References written one index at a time, so that they are obviously right: what the library
/// computes with pieces is compared with them.
namespace shardtool::reference {

inline constexpr i64 kPadding = -1;

/// The global index of every local index, kPadding where there is none.
using Indices = std::vector<i64>;

Indices indices(const index::AxisMap& map);
/// The map with these indices, in pieces of one element each.
index::AxisMap map_of(const Indices& local_to_global, i64 global_size);

/// The definition of every AxisExpr node, evaluated for one device.
Indices held_indices(const layout::AxisExpr& expr, const mesh::Mesh& mesh, i64 rank);

/// Tensor data at bit granularity: element e of `bits` bits begins at bit e * bits; the bytes'
/// low bits come first.
using Bytes = std::vector<std::uint8_t>;
Bytes zeros(i64 elements, int bits);
/// Elements of a tensor, each different from its neighbours as far as its bits allow.
Bytes numbered(i64 elements, int bits);
void copy_element(const Bytes& src, i64 from, Bytes& dst, i64 to, int bits);

/// What the holder of `region` has of the tensor `whole`: element by element, padding is zero.
Bytes place(const index::Region& region, const Bytes& whole, int bits);

/// The loop in the contract of StridedCopy.
void run(const index::StridedCopy& copy, const Bytes& src, Bytes& dst);

/// All index tuples of a box of these sizes, last axis fastest.
std::vector<std::vector<i64>> tuples(std::span<const i64> sizes);
/// The row-major number of an index tuple.
i64 row_major(std::span<const i64> tuple, std::span<const i64> extents);

}  // namespace shardtool::reference

// How rapidcheck prints counterexamples.
namespace shardtool::index {
void showValue(const AxisMap& map, std::ostream& out);
}
namespace shardtool::mesh {
void showValue(const Mesh& mesh, std::ostream& out);
}
namespace shardtool::layout {
void showValue(const AxisExpr& expr, std::ostream& out);
void showValue(const Layout& layout, std::ostream& out);
}  // namespace shardtool::layout
