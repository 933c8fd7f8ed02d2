#pragma once

#include "lib/ops/fwd.h"
#include "lib/ops/schema.h"

/// Functions of single features.
namespace shardtool::ops {

/// SiLU, GELU and the others of kernels/ops/activation.h.
struct Activation {
  Word kind;
};
void decode(Activation& op, OpDecoder& in);
std::vector<plan::OpRow> rules(const Activation& op, const RuleSite& site);
Value place(const Activation& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Activation& op, const OpAt<N>& at);

/// xIELU (Huang 2024), with stored numbers alpha_p, alpha_n, beta and eps.
struct Xielu {};
void decode(Xielu& op, OpDecoder& in);
std::vector<plan::OpRow> rules(const Xielu& op, const RuleSite& site);
Value place(const Xielu& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Xielu& op, const OpAt<N>& at);

/// cap * tanh(x / cap) (Gemma 2); 0: no cap.
struct Softcap {
  Number cap;
};
void decode(Softcap& op, OpDecoder& in);
std::vector<plan::OpRow> rules(const Softcap& op, const RuleSite& site);
Value place(const Softcap& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Softcap& op, const OpAt<N>& at);

/// Clamps to [-limit, limit], or to at most the limit; 0: no limit.
struct Clamp {
  Number limit;
  bool from_above = false;
};
void decode(Clamp& op, OpDecoder& in);
std::vector<plan::OpRow> rules(const Clamp& op, const RuleSite& site);
Value place(const Clamp& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Clamp& op, const OpAt<N>& at);

}  // namespace shardtool::ops
