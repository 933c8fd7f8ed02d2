#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/ops/norm.h"
#include "lib/ops/fwd.h"
#include "lib/ops/schema.h"

/// Norms. A norm over features on several devices has two steps: the devices compute sums together,
/// then normalise.
namespace shardtool::ops {

/// RMS, layer or L2 norm over `size` features of a row, or of every head. Without a weight the
/// factors are 1.
struct Norm {
  using Kind = kernels::NormKind;
  Kind kind = Kind::kRms;
  Dim size;
  Number eps;
  bool per_head = false;
  /// Only for per_head: every head has its own weight, a row of one tensor or a tensor with <head>
  /// in its name.
  std::optional<Dim> heads;
  bool one_plus_weight = false;    ///< multiplies by 1 + w
  bool cast_after_weight = false;  ///< multiplies in f32 and rounds the product
};
void decode(Norm& op, OpDecoder& in);
void check(const Norm& op, const Widths& widths);
std::vector<plan::OpRow> rules(const Norm& op, const RuleSite& site);
Value place(const Norm& op, Walk& walk, const BoundOp& bound);
bool is_launched(const Norm& op);
template <class N>
Part<N> apply(const Norm& op, const OpAt<N>& at);

/// Sums every `size` features, or their squares. Devices that share these features add up their
/// sums.
struct Sums {
  Dim size;
  bool squared = true;
};
/// Decodes the op "squares".
void decode(Sums& op, OpDecoder& in);
/// Decodes the op "sums".
void decode_plain(Sums& op, OpDecoder& in);
void check(const Sums& op, const Widths& widths);
std::vector<plan::OpRow> rules(const Sums& op, const RuleSite& site);
Value place(const Sums& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Sums& op, const OpAt<N>& at);

/// An RMS norm over `size` features, which need not be on one device: divides by the root of the
/// mean from such sums, and multiplies by a weight per feature.
struct Normalise {
  Dim features, size;
  Number eps;
};
void decode(Normalise& op, OpDecoder& in);
void check(const Normalise& op, const Widths& widths);
std::vector<plan::OpRow> rules(const Normalise& op, const RuleSite& site);
Value place(const Normalise& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Normalise& op, const OpAt<N>& at);

/// Scales a value to the root mean square of another one (Gemma 3n, altup). Inputs are the value,
/// its sum of squares and the other's. Means below `least` count as `least`.
struct Resize {
  Dim size;
  Number least;
};
void decode(Resize& op, OpDecoder& in);
void check(const Resize& op, const Widths& widths);
std::vector<plan::OpRow> rules(const Resize& op, const RuleSite& site);
Value place(const Resize& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Resize& op, const OpAt<N>& at);

/// Gaussian top-k sparsity (Gemma 3n): relu(x - mean - deviation * quantile(share)), where `share`
/// of a normal distribution becomes 0. Inputs are the value, the sum of its `size` features, and
/// that of their squares.
struct GaussianTopK {
  Dim size;
  std::vector<std::string> shares;  ///< paths of a list with one share per layer
};
void decode(GaussianTopK& op, OpDecoder& in);
void check(const GaussianTopK& op, const Widths& widths);
std::vector<plan::OpRow> rules(const GaussianTopK& op, const RuleSite& site);
Value place(const GaussianTopK& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const GaussianTopK& op, const OpAt<N>& at);

}  // namespace shardtool::ops
