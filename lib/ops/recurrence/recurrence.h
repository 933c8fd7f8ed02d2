#pragma once

#include <limits>
#include <optional>

#include "kernels/ops/recur.h"
#include "lib/ops/fwd.h"
#include "lib/ops/schema.h"

/// Ops along a sequence: convolutions, linear attention and state-space models.
namespace shardtool::ops {

/// A causal depthwise convolution of every feature over a position and the taps - 1 before it.
struct Convolve {
  Dim features, taps;
};
void decode(Convolve& op, OpDecoder& in);
void check(const Convolve& op, const Widths& widths);
std::vector<plan::OpRow> rules(const Convolve& op, const RuleSite& site);
Value place(const Convolve& op, Walk& walk, const BoundOp& bound);
bool is_launched(const Convolve& op);
template <class N>
Part<N> apply(const Convolve& op, const OpAt<N>& at);

/// Compressed KV (DeepSeek V4): the weighted mean of the last positions, feature by feature, with
/// weights softmax(second input + a stored number per tap). A value of `width` features has width /
/// size series of `size` features. The last `taps` positions give the last series, the `taps`
/// before them the series before it, and so on. Positions before the sequence have no weight.
struct CompressedKv {
  Dim size, width, taps;
};
void decode(CompressedKv& op, OpDecoder& in);
void check(const CompressedKv& op, const Widths& widths);
std::vector<plan::OpRow> rules(const CompressedKv& op, const RuleSite& site);
Value place(const CompressedKv& op, Walk& walk, const BoundOp& bound);
bool is_launched(const CompressedKv& op);
template <class N>
Part<N> apply(const CompressedKv& op, const OpAt<N>& at);

/// Step of every head's state (Mamba's dt): softplus(x + bias), clamped.
struct StepSize {
  Dim heads;
  Number least;
  Number most{{}, std::numeric_limits<double>::infinity()};
};
void decode(StepSize& op, OpDecoder& in);
void check(const StepSize& op, const Widths& widths);
std::vector<plan::OpRow> rules(const StepSize& op, const RuleSite& site);
Value place(const StepSize& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const StepSize& op, const OpAt<N>& at);

/// The share of the state that a step keeps: e^(-e^rate x). There is one number per head; or
/// `states` numbers with their own rates; or one for each of a head's `steps` with one rate. With a
/// least exponent it is e^(least sigmoid(e^rate x)), for any x.
struct Decay {
  Dim heads;
  std::optional<Dim> states, steps;
  std::optional<Number> least;
};
void decode(Decay& op, OpDecoder& in);
void check(const Decay& op, const Widths& widths);
std::vector<plan::OpRow> rules(const Decay& op, const RuleSite& site);
Value place(const Decay& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Decay& op, const OpAt<N>& at);

/// A constant decay (MiniMax, lightning attention): e^-x of the head's stored number [heads, 1, 1],
/// the same for every token.
struct Fade {
  Dim heads;
};
void decode(Fade& op, OpDecoder& in);
std::vector<plan::OpRow> rules(const Fade& op, const RuleSite& site);
Value place(const Fade& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Fade& op, const OpAt<N>& at);

/// A recurrence with a state of key_dim x value_dim per head: linear attention, Mamba-2 (kAdd) or
/// the gated delta rule (kDelta). Inputs are queries and keys, each shared by heads / key_heads
/// heads; values; and for every head a decay (one number, or key_dim numbers) and a gate, both 1 if
/// absent. A skip adds the head's values times its number to the output.
struct Recurrence {
  kernels::RecurrenceRule rule = kernels::RecurrenceRule::kAdd;
  Dim heads, key_heads, key_dim, value_dim;
  std::optional<Dim> scale_of;   ///< its square root divides the queries
  std::optional<Dim> decay_dim;  ///< numbers per head's decay; unset: 1
};
void decode(Recurrence& op, OpDecoder& in);
void check(const Recurrence& op, const Widths& widths);
std::vector<plan::OpRow> rules(const Recurrence& op, const RuleSite& site);
Value place(const Recurrence& op, Walk& walk, const BoundOp& bound);
void price(const Recurrence& op, Pricing& pricing);
bool is_launched(const Recurrence& op);
template <class N>
Part<N> apply(const Recurrence& op, const OpAt<N>& at);

}  // namespace shardtool::ops
