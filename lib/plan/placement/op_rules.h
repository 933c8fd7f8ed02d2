#pragma once

#include <vector>

#include "lib/base/shape.h"
#include "lib/plan/placement/placement.h"

/// What an operation makes of placed operands, along any one mesh axis: rows "operands placed so
/// give a result placed so", the all-Replicated row first. Order breaks ties.
namespace shardtool::plan {

/// One way to run an op along one mesh axis.
struct OpRow {
  std::vector<Placement> operands;
  Placement result;

  bool operator==(const OpRow&) const = default;
};
/// "(R, S(1)) -> S(1)".
std::string to_string(const OpRow& row);

/// lhs [..., M, K] x rhs [..., K, N], ranks of 2 and more, batch axes aligned from the right: each
/// shared batch axis, one of one side only, M, N, K -> P, and a Partial side.
/// Throws kShapeMismatch for other shapes.
std::vector<OpRow> matmul_rows(const Shape& lhs, const Shape& rhs);

/// relu, silu, exp: every axis.
std::vector<OpRow> nonlinear_rows(const Shape& x);
/// neg, cast: every axis, and P -> P.
std::vector<OpRow> linear_rows(const Shape& x);

/// mul, div: every axis of the result where operands of its full extent are cut and broadcast ones
/// are whole. Throws kShapeMismatch for shapes that do not broadcast.
std::vector<OpRow> mul_rows(const Shape& a, const Shape& b);
/// add, sub: the same, and (P, P) -> P.
std::vector<OpRow> add_rows(const Shape& a, const Shape& b);

/// rms_norm, layer_norm over the last axes of `x` with `parameters` whole operands after it.
std::vector<OpRow> norm_rows(const Shape& x, int normalised_axes, int parameters);
/// softmax, max, argmax over one axis: every other axis, in the numbering of `x`.
std::vector<OpRow> softmax_rows(const Shape& x, int axis);
/// sum over one axis that stays with extent 1: every axis, the summed one -> P, and P -> P.
std::vector<OpRow> sum_rows(const Shape& x, int axis);
/// mean over one axis: as the sum, with averages. Means of parts average to the mean of all only
/// where the parts are equal: is_feasible refuses the cut row elsewhere, the source system does
/// not.
std::vector<OpRow> mean_rows(const Shape& x, int axis);
/// The axes of x in another order: result axis i is x's axis order[i]. P -> P.
std::vector<OpRow> permute_rows(const std::vector<int>& order);
/// An axis of `from` follows where the products of the extents before it and up to it fall on cuts
/// of `to` that hold it, its outermost part cut. P -> P. Throws kShapeMismatch for unequal sizes.
std::vector<OpRow> reshape_rows(const Shape& from, const Shape& to);
/// argsort, nonzero, scatter_nd, products of packed weights: every device does all of it.
std::vector<OpRow> whole_rows(int operands);
/// chunk, slice, pad, repeat_interleave, top_k along some axes: every other axis; P -> P where the
/// op is linear (top_k is not, nor padding with anything but 0).
std::vector<OpRow> untouched_rows(const Shape& x, const std::vector<int>& touched, bool is_linear);

/// Operands of `shape` one after the other along an axis, of which their extents may differ: every
/// other axis, and all P. Parts of the whole are no parts of the operands, so that the axis itself
/// has no row.
std::vector<OpRow> concat_rows(const Shape& shape, int operands, int axis);
/// Operands of `shape` along a new axis: every axis of theirs, and all P.
std::vector<OpRow> stack_rows(const Shape& shape, int operands, int axis);
/// The results, all placed alike, are runs of one axis: every other axis, and P -> P.
std::vector<OpRow> split_rows(const Shape& x, int axis);
/// What the source system has beside these rows: the axis of a concat, and that of a split whose
/// sizes its largest mesh axis divides. What a device then has is a part of every section, and not
/// the part of the whole that the placement says.
std::vector<OpRow> source_concat_rows(const Shape& shape, int operands);
std::vector<OpRow> source_split_rows(const Shape& x, int axis, const std::vector<i64>& sizes,
                                     i64 largest_mesh_axis);

/// scatter, scatter_add of updates at indices, both of x's rank, along one axis: every other axis,
/// of all three.
std::vector<OpRow> scatter_rows(const Shape& x, int axis);

/// x [N, C, ...] with filters [O, C / groups, ...], and a bias [O]: N; O, whose bias follows; and
/// without a bias, which would be added on every device, C -> P (of one group) and a Partial side.
struct Convolution {
  i64 groups = 1;
  bool has_bias = false;
};
std::vector<OpRow> conv_rows(const Convolution& conv);

/// table [V, ...] looked up at ids: the table's other axes, the ids' axes, (P, R) -> P. No row is
/// cut by vocabulary: a masked look-up is another op.
std::vector<OpRow> gather_rows(const Shape& table, const Shape& ids);
/// The look-up that skips ids of other devices: (S(0), R) -> P beside the rows of gather.
std::vector<OpRow> masked_gather_rows(const Shape& table, const Shape& ids);

}  // namespace shardtool::plan
