#pragma once

#include <array>
#include <span>

#include "lib/base/tensor_spec.h"
#include "lib/ops/placed_value.h"
#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::ops {

/// The work of one device in a pass through all layers, the busiest device of each op.
struct Amounts {
  /// By number type: that of the weights, bf16 for products of activations.
  std::array<double, plan::kArithmetics.size()> flops{};
  double weight_bytes = 0;  ///< read; of experts the expected number that some token chose
  double cache_bytes = 0;   ///< read
  /// Products (those of one value count once), attentions, experts, norms and look-ups; elementwise
  /// ops count as parts of these.
  i64 launches = 0;

  double all_flops() const;
};

/// The tokens of a pass, and the positions that each attends to. Behind an encoder, which reads the
/// prompt, a prefill has one token of each sequence.
struct Phase {
  i64 tokens = 0;
  i64 sequences = 0;
  bool is_prefill = false;
  i64 context = 0;
};

/// One op of one device in one phase, and the amounts that its price is added to.
struct Pricing {
  const ModelSizes& model;
  std::span<const TensorSpec> tensors;
  const Step& step;
  Phase phase;     ///< of the device's own tokens
  i64 tokens;      ///< of the device, for which the op computes
  i64 all_tokens;  ///< of all devices
  i64 layer;
  i64 kv_cache_bits;  ///< of one element
  Amounts& sum;

  /// The number type of the op's products: that of its first weight.
  plan::Arithmetic arithmetic() const;
  /// Bytes of the op's weights on the device, at the dtype of the first one; companions of
  /// quantised weights count as 0.
  double weight_bytes() const;
  void add_flops(plan::Arithmetic of, double flops) { sum.flops[static_cast<size_t>(of)] += flops; }
  /// Reads the weights once, and multiplies them `times` per token.
  void add_products(i64 times = 1);
};

/// Bytes of `elements` numbers.
double bytes_of(i64 elements, Dtype dtype);

}  // namespace shardtool::ops
