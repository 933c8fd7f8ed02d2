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
/// Rows of chunk, slice, pad, repeat_interleave, top_k along some axes: every other axis; P -> P
/// for linear ops (not top_k, nor padding with values other than 0).
std::vector<OpRow> untouched_rows(const Shape& x, const std::vector<int>& touched, bool is_linear);

/// Rows of a look-up of ids in table [V, ...]: the table's other axes, the ids' axes, (P, R) -> P.
/// Cuts by vocabulary need the masked look-up, a different op.
std::vector<OpRow> gather_rows(const Shape& table, const Shape& ids);
/// Rows of the look-up that skips ids of other devices: (S(0), R) -> P in addition to those of
/// gather.
std::vector<OpRow> masked_gather_rows(const Shape& table, const Shape& ids);

}  // namespace shardtool::plan
