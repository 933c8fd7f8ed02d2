#pragma once

#include <optional>
#include <vector>

#include "lib/ops/fwd.h"
#include "lib/ops/schema.h"

/// Sums and products of values, and of a value with stored numbers.
namespace shardtool::ops {

/// Multiplies feature by feature. Each feature of a narrower value is used for several of the
/// other.
struct Multiply {};
void decode(Multiply& op, OpDecoder& in);
void check(const Multiply& op, const Widths& widths);
std::vector<plan::OpRow> rules(const Multiply& op, const RuleSite& site);
Value place(const Multiply& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Multiply& op, const OpAt<N>& at);

/// Adds feature by feature, with narrower values as in Multiply.
struct Add {};
void decode(Add& op, OpDecoder& in);
void check(const Add& op, const Widths& widths);
std::vector<plan::OpRow> rules(const Add& op, const RuleSite& site);
Value place(const Add& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Add& op, const OpAt<N>& at);

/// Multiplies by a number, and by a weight if there is one: one stored number for all features, or
/// one per run of features.
struct Scale {
  Number by{{}, 1};
  std::optional<Dim> size;    ///< size of the weight
  std::vector<Dim> sections;  ///< lengths of the runs; empty: equal runs
  /// Divides by the square root of the number, rounded to the weights' dtype.
  bool by_sqrt = false;
  bool divides = false;
};
void decode(Scale& op, OpDecoder& in);
std::vector<plan::OpRow> rules(const Scale& op, const RuleSite& site);
Value place(const Scale& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Scale& op, const OpAt<N>& at);

/// Adds a number, and a stored number per feature if there is a bias.
struct Shift {
  Number by;
  std::optional<Dim> size;  ///< size of the bias
};
void decode(Shift& op, OpDecoder& in);
std::vector<plan::OpRow> rules(const Shift& op, const RuleSite& site);
Value place(const Shift& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Shift& op, const OpAt<N>& at);

/// Temperature tuning (Llama 4): multiplies by 1 + strength * ln(1 + floor((p + first) / span)) at
/// position p.
struct TemperatureTuning {
  Number strength, span;
  Number first{{}, 1};
};
void decode(TemperatureTuning& op, OpDecoder& in);
std::vector<plan::OpRow> rules(const TemperatureTuning& op, const RuleSite& site);
Value place(const TemperatureTuning& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const TemperatureTuning& op, const OpAt<N>& at);

}  // namespace shardtool::ops
