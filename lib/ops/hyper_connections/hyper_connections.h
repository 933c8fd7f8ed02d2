#pragma once

#include "lib/ops/fwd.h"
#include "lib/ops/schema.h"

/// Hyper-connections (Zhu et al. 2024), whose residual is several streams, with the manifold
/// constraint of mHC (DeepSeek V4).
namespace shardtool::ops {

/// Weighted sums of streams, which are runs of `size` features of the first input. Each token has
/// its own factors: y_j = sum_i c[j * from + i] x_i; with by_source, c[i * to + j].
struct HyperConnection {
  Dim size, from, to;
  bool by_source = false;
};
void decode(HyperConnection& op, OpDecoder& in);
void check(const HyperConnection& op, const Widths& widths);
std::vector<plan::OpRow> rules(const HyperConnection& op, const RuleSite& site);
Value place(const HyperConnection& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const HyperConnection& op, const OpAt<N>& at);

/// Sinkhorn normalisation: makes the rows and columns of a positive matrix of `size` x `size`
/// features add up to about 1. Takes the softmax of the rows, + eps; divides columns by their sums
/// + eps; each further round divides rows, then columns.
struct Sinkhorn {
  Dim size;
  Number rounds, eps;
};
void decode(Sinkhorn& op, OpDecoder& in);
void check(const Sinkhorn& op, const Widths& widths);
std::vector<plan::OpRow> rules(const Sinkhorn& op, const RuleSite& site);
Value place(const Sinkhorn& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Sinkhorn& op, const OpAt<N>& at);

}  // namespace shardtool::ops
