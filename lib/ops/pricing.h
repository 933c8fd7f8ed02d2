#pragma once

#include <array>
#include <span>

#include "lib/base/tensor_spec.h"
#include "lib/ops/placed_value.h"
#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::ops {

/// Work of one device in a pass through all layers: that of the busiest device, for each op.
struct Amounts {
  /// By number type: the weights' type; bf16 for products of activations.
  std::array<double, plan::kArithmetics.size()> flops{};
  /// Bytes of weights read; for experts the expected number of those that some token chose.
  double weight_bytes = 0;
  double cache_bytes = 0;  ///< bytes of caches read
  /// Number of products (those of one value count once), attentions, experts, norms and look-ups.
  /// Elementwise ops are fused with these.
  i64 launches = 0;

  double all_flops() const;
};

/// The tokens of a pass, and the positions that each attends to. After an encoder, which reads the
/// prompt, a prefill has one token per sequence.
struct Phase {
  i64 tokens = 0;
  i64 sequences = 0;
  bool is_prefill = false;
  i64 context = 0;
};

/// One op on one device in one phase, and the amounts to which its price is added.
struct Pricing {
  const ModelSizes& model;
  std::span<const TensorSpec> tensors;
  const Step& step;
  Phase phase;     ///< with the device's own tokens
  i64 tokens;      ///< tokens that the device computes
  i64 all_tokens;  ///< tokens of all devices
  i64 layer;
  i64 kv_cache_bits;  ///< bits per element
  Amounts& sum;

  /// Number type of the op's products: that of its first weight.
  plan::Arithmetic arithmetic() const;
  /// Bytes of the op's weights on the device, in the dtype of the first one. Scales of quantised
  /// weights are not counted.
  double weight_bytes() const;
  void add_flops(plan::Arithmetic of, double flops) { sum.flops[static_cast<size_t>(of)] += flops; }
  /// Adds one read of the weights, and `times` products with them per token.
  void add_products(i64 times = 1);
};

/// Bytes of `elements` numbers.
double bytes_of(i64 elements, Dtype dtype);

}  // namespace shardtool::ops
