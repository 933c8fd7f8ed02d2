#pragma once

#include <vector>

#include "lib/base/shape.h"
#include "lib/plan/placement/placement.h"

/// Placement rules of operations, along any single mesh axis: rows "operands placed so give a
/// result placed so", the all-Replicated row first. Order breaks ties.
namespace shardtool::plan {

/// One way to run an op along one mesh axis.
struct OpRow {
  std::vector<Placement> operands;
  Placement result;

  bool operator==(const OpRow&) const = default;
};
/// Formats as "(R, S(1)) -> S(1)".
std::string to_string(const OpRow& row);

/// Rows for lhs [..., M, K] x rhs [..., K, N], ranks of 2 and more, batch axes aligned from the
/// right: each shared batch axis, those of one side only, M, N, K -> P, and a Partial side. Throws
/// kShapeMismatch for other shapes.
std::vector<OpRow> matmul_rows(const Shape& lhs, const Shape& rhs);

/// Rows of relu, silu, exp: every axis.
std::vector<OpRow> nonlinear_rows(const Shape& x);
/// Rows of neg, cast: every axis, and P -> P.
std::vector<OpRow> linear_rows(const Shape& x);

/// Rows of mul, div: every axis of the result, with operands of its full extent cut and broadcast
/// ones whole. Throws kShapeMismatch for shapes that do not broadcast.
std::vector<OpRow> mul_rows(const Shape& a, const Shape& b);
/// Rows of add, sub: those of mul, and (P, P) -> P.
std::vector<OpRow> add_rows(const Shape& a, const Shape& b);

/// Rows of rms_norm, layer_norm over the last axes of `x`, followed by `parameters` whole operands.
std::vector<OpRow> norm_rows(const Shape& x, int normalised_axes, int parameters);
/// Rows of softmax, max, argmax over one axis: every other axis, in the numbering of `x`.
std::vector<OpRow> softmax_rows(const Shape& x, int axis);
/// Rows of a sum over one axis, kept with extent 1: every axis, the summed one -> P, and P -> P.
std::vector<OpRow> sum_rows(const Shape& x, int axis);
/// Rows of a mean over one axis: as the sum, with averages. Means of parts average to the overall
/// mean only if the parts are equal: otherwise is_feasible refuses the cut row, unlike the source
/// system.
std::vector<OpRow> mean_rows(const Shape& x, int axis);
/// Rows of a permutation: result axis i is x's axis order[i]. P -> P.
std::vector<OpRow> permute_rows(const std::vector<int>& order);
/// Rows of a reshape: an axis of `from` follows where the products of the extents before it and up
/// to it fall on cuts of the `to` axis that holds it, its outermost part cut. P -> P. Throws
/// kShapeMismatch for unequal sizes.
std::vector<OpRow> reshape_rows(const Shape& from, const Shape& to);
/// Rows of argsort, nonzero, scatter_nd, products of packed weights: every device computes all of
/// it.
std::vector<OpRow> whole_rows(int operands);
/// Rows of chunk, slice, pad, repeat_interleave, top_k along some axes: every other axis; P -> P
/// for linear ops (not top_k, nor padding with values other than 0).
std::vector<OpRow> untouched_rows(const Shape& x, const std::vector<int>& touched, bool is_linear);

/// Rows of a concat of operands of `shape` along an axis on which their extents may differ: every
/// other axis, and all P. The axis itself has no row, because parts of the result are not parts of
/// the operands.
std::vector<OpRow> concat_rows(const Shape& shape, int operands, int axis);
/// Rows of a stack of operands of `shape` along a new axis: each of their axes, and all P.
std::vector<OpRow> stack_rows(const Shape& shape, int operands, int axis);
/// Rows of a split into ranges of one axis, all results placed alike: every other axis, and P -> P.
std::vector<OpRow> split_rows(const Shape& x, int axis);
/// Rows that the source system has in addition: the axis of a concat, and that of a split whose
/// sizes are multiples of the largest mesh axis. The device then has a part of every section, which
/// is not the part of the whole that the placement describes.
std::vector<OpRow> source_concat_rows(const Shape& shape, int operands);
std::vector<OpRow> source_split_rows(const Shape& x, int axis, const std::vector<i64>& sizes,
                                     i64 largest_mesh_axis);

/// Rows of scatter, scatter_add of updates at indices, both of x's rank, along one axis: every
/// other axis, for all three.
std::vector<OpRow> scatter_rows(const Shape& x, int axis);

/// Convolution of x [N, C, ...] with filters [O, C / groups, ...], and a bias [O]. Rows: N; O, with
/// the bias; and without a bias, which would be added on every device, C -> P (if there is one
/// group) and a Partial side.
struct Convolution {
  i64 groups = 1;
  bool has_bias = false;
};
std::vector<OpRow> conv_rows(const Convolution& conv);

/// Rows of a look-up of ids in table [V, ...]: the table's other axes, the ids' axes, (P, R) -> P.
/// Cuts by vocabulary need the masked look-up, a different op.
std::vector<OpRow> gather_rows(const Shape& table, const Shape& ids);
/// Rows of the look-up that skips ids of other devices: (S(0), R) -> P in addition to those of
/// gather.
std::vector<OpRow> masked_gather_rows(const Shape& table, const Shape& ids);

}  // namespace shardtool::plan
