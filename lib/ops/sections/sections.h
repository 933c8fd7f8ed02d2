#pragma once

#include <vector>

#include "lib/ops/fwd.h"
#include "lib/ops/operands.h"
#include "lib/ops/schema.h"

/// Ops that split the features of a value into sections, or join them.
namespace shardtool::ops {

/// Splits the features of a value into the op's outputs. kConcat: one section after another;
/// kPerHead: all sections of one head, then of the next; kInterleaved: feature i belongs to section
/// i mod n.
struct Split {
  enum class Order { kConcat, kPerHead, kInterleaved };
  Order order = Order::kConcat;
  std::vector<Dim> sections;
  Dim heads;  ///< only for kPerHead
};
void decode(Split& op, OpDecoder& in);
size_t outputs(const Split& op);
void check(const Split& op, const Widths& widths);
std::vector<plan::OpRow> rules(const Split& op, const RuleSite& site);
std::vector<Value> place(const Split& op, Walk& walk, const BoundOp& bound);
void price(const Split& op, Pricing& pricing);
template <class N>
std::vector<Part<N>> apply(const Split& op, const OpAt<N>& at);

/// Joins the inputs: one after another (kConcat), or head by head (kPerHead); then all heads share
/// an input that has the width of one section.
struct Join {
  enum class Order { kPerHead, kConcat };
  Order order = Order::kPerHead;
  std::vector<Dim> sections;  ///< only for kPerHead, as is `heads`
  Dim heads;
};
void decode(Join& op, OpDecoder& in);
/// `given` is the number of inputs that the graph names.
Operands inputs(const Join& op, size_t given);
void check(const Join& op, const Widths& widths);
std::vector<plan::OpRow> rules(const Join& op, const RuleSite& site);
Value place(const Join& op, Walk& walk, const BoundOp& bound);
void price(const Join& op, Pricing& pricing);
template <class N>
Part<N> apply(const Join& op, const OpAt<N>& at);

/// Selects the layer's own `size` features of a value that has those of all layers in order
/// (per-layer embeddings of Gemma 3n).
struct OfLayer {
  Dim size;
};
void decode(OfLayer& op, OpDecoder& in);
std::vector<plan::OpRow> rules(const OfLayer& op, const RuleSite& site);
Value place(const OfLayer& op, Walk& walk, const BoundOp& bound);
void price(const OfLayer& op, Pricing& pricing);
template <class N>
Part<N> apply(const OfLayer& op, const OpAt<N>& at);

}  // namespace shardtool::ops
