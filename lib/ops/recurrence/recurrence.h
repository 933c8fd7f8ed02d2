#pragma once

#include <limits>
#include <optional>

#include "kernels/ops/recur.h"
#include "lib/ops/fwd.h"
#include "lib/ops/schema.h"

/// Ops along a sequence: convolutions, linear attention and state-space models.
namespace shardtool::ops {

/// A causal depthwise convolution: every feature with those of the taps - 1 positions before it.
struct Convolve {
  Dim features, taps;
};
void decode(Convolve& op, OpDecoder& in);
void check(const Convolve& op, const Widths& widths);
Value place(const Convolve& op, Walk& walk, const BoundOp& bound);
bool is_launched(const Convolve& op);
template <class N>
Part<N> apply(const Convolve& op, const OpAt<N>& at);

/// Compressed KV (DeepSeek V4): the weighted mean of the last positions, feature by feature, with
/// weights softmax(second input + a stored number for each tap). A value of `width` features holds
/// width / size series of `size` features: the last `taps` positions give their last series, the
/// `taps` before these the series before it, and so on. Positions before the sequence have no
/// weight.
struct CompressedKv {
  Dim size, width, taps;
};
void decode(CompressedKv& op, OpDecoder& in);
void check(const CompressedKv& op, const Widths& widths);
Value place(const CompressedKv& op, Walk& walk, const BoundOp& bound);
bool is_launched(const CompressedKv& op);
template <class N>
Part<N> apply(const CompressedKv& op, const OpAt<N>& at);

/// The step of every head's state (Mamba's dt): softplus(x + bias) within limits.
struct StepSize {
  Dim heads;
  Number least;
  Number most{{}, std::numeric_limits<double>::infinity()};
};
void decode(StepSize& op, OpDecoder& in);
void check(const StepSize& op, const Widths& widths);
Value place(const StepSize& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const StepSize& op, const OpAt<N>& at);

/// The share of the state that such a step keeps: e^(-e^rate x), one number for each head; or
/// `states` numbers with rates of their own; or one for each of a head's `steps`, with one rate.
/// With a least exponent it is e^(least sigmoid(e^rate x)), for any x.
struct Decay {
  Dim heads;
  std::optional<Dim> states, steps;
  std::optional<Number> least;
};
void decode(Decay& op, OpDecoder& in);
void check(const Decay& op, const Widths& widths);
Value place(const Decay& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Decay& op, const OpAt<N>& at);

/// A constant decay (MiniMax, lightning attention): e^-x of the head's stored number, [heads, 1,
/// 1], equal for every token.
struct Fade {
  Dim heads;
};
void decode(Fade& op, OpDecoder& in);
Value place(const Fade& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Fade& op, const OpAt<N>& at);

/// A recurrence with a state of key_dim x value_dim per head: linear attention, Mamba-2 (kAdd) or
/// the gated delta rule (kDelta). Inputs are queries and keys, each shared by heads / key_heads
/// heads, values, and for every head a decay (one number, or key_dim numbers) and a gate, 1 where
/// there is no such input. With a skip every head's values times its number are added to what it
/// reads.
struct Recurrence {
  kernels::RecurrenceRule rule = kernels::RecurrenceRule::kAdd;
  Dim heads, key_heads, key_dim, value_dim;
  std::optional<Dim> scale_of;   ///< queries are divided by its square root
  std::optional<Dim> decay_dim;  ///< numbers of a head's decay; unset: 1
};
void decode(Recurrence& op, OpDecoder& in);
void check(const Recurrence& op, const Widths& widths);
Value place(const Recurrence& op, Walk& walk, const BoundOp& bound);
void price(const Recurrence& op, Pricing& pricing);
bool is_launched(const Recurrence& op);
template <class N>
Part<N> apply(const Recurrence& op, const OpAt<N>& at);

}  // namespace shardtool::ops
