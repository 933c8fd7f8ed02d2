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

/// Reference implementations, one index at a time, for comparison with the library's pieces.
namespace shardtool::reference {

inline constexpr i64 kPadding = -1;

/// Global index of every local index, kPadding for padding.
using Indices = std::vector<i64>;

Indices indices(const index::AxisMap& map);
/// Returns the map with these indices, in pieces of one element each.
index::AxisMap map_of(const Indices& local_to_global, i64 global_size);

/// Evaluates the definition of every AxisExpr node for one device.
Indices held_indices(const layout::AxisExpr& expr, const mesh::Mesh& mesh, i64 rank);

/// Tensor data with bit granularity: element e of `bits` bits begins at bit e * bits, counted from
/// the low bit of each byte.
using Bytes = std::vector<std::uint8_t>;
Bytes zeros(i64 elements, int bits);
/// Elements that differ from their neighbours as far as their bits allow.
Bytes numbered(i64 elements, int bits);
void copy_element(const Bytes& src, i64 from, Bytes& dst, i64 to, int bits);

/// Returns the holder's part of the tensor `whole`, copied element by element; padding is zero.
Bytes place(const index::Region& region, const Bytes& whole, int bits);

/// Runs the loop in the contract of StridedCopy.
void run(const index::StridedCopy& copy, const Bytes& src, Bytes& dst);

/// All index tuples of a box of these sizes, last axis fastest.
std::vector<std::vector<i64>> tuples(std::span<const i64> sizes);
/// The row-major number of an index tuple.
i64 row_major(std::span<const i64> tuple, std::span<const i64> extents);

}  // namespace shardtool::reference

// Printers of rapidcheck's counterexamples.
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
