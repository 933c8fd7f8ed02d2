#pragma once

#include "lib/ops/fwd.h"
#include "lib/ops/patches/patches.h"
#include "lib/ops/schema.h"

/// Ops that make the first values of a model: embeddings, and inputs that replace tokens.
namespace shardtool::ops {

/// Looks up rows of a table by token, position or segment, or by a patch's place in the square grid
/// that the rows form. A wider image starts again at the first row or column. Positions without a
/// patch (the class token) use the first row; the grid's rows follow it.
struct Embed {
  enum class By { kToken, kPosition, kSegment, kPatch };
  By by = By::kToken;
  Dim rows, size;
  Number offset;    ///< the row of position 0
  Patches patches;  ///< only for kPatch
};
void decode(Embed& op, OpDecoder& in);
std::vector<plan::OpRow> rules(const Embed& op, const RuleSite& site);
Value place(const Embed& op, Walk& walk, const BoundOp& bound);
void price(const Embed& op, Pricing& pricing);
bool is_launched(const Embed& op);

/// An input beside tokens, such as audio: `size` numbers per position.
struct ExtraInput {
  Dim size;
};
void decode(ExtraInput& op, OpDecoder& in);
std::vector<plan::OpRow> rules(const ExtraInput& op, const RuleSite& site);
Value place(const ExtraInput& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const ExtraInput& op, const OpAt<N>& at);

/// Sinusoidal position embeddings (Vaswani et al. 2017): sines, then cosines, of the position times
/// size / 2 frequencies base^(-i / (size / 2)); with reaches_base the last frequency is 1 / base.
struct Sinusoids {
  Dim size;
  Number base{{}, 10000};
  Number offset;  ///< added to the position in the angle
  bool reaches_base = false;
};
void decode(Sinusoids& op, OpDecoder& in);
std::vector<plan::OpRow> rules(const Sinusoids& op, const RuleSite& site);
Value place(const Sinusoids& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Sinusoids& op, const OpAt<N>& at);

/// A 1-d convolution along audio frames, W [rows, columns, taps], where a position holds `frames`
/// consecutive frames: y[o] = b + sum over taps k of W_k x[o * stride + k - (taps - 1) / 2], within
/// the sequence. The result has frames / stride frames per position.
struct ConvolveFrames {
  Dim rows, columns, taps, frames, stride;
};
void decode(ConvolveFrames& op, OpDecoder& in);
void check(const ConvolveFrames& op, const Widths& widths);
std::vector<plan::OpRow> rules(const ConvolveFrames& op, const RuleSite& site);
Value place(const ConvolveFrames& op, Walk& walk, const BoundOp& bound);
void price(const ConvolveFrames& op, Pricing& pricing);
bool is_launched(const ConvolveFrames& op);
template <class N>
Part<N> apply(const ConvolveFrames& op, const OpAt<N>& at);

}  // namespace shardtool::ops
