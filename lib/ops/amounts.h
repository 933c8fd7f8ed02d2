#pragma once

#include <array>

#include "lib/base/checked.h"
#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::ops {

/// Work of one device in a pass through all layers: that of the busiest device, for each op.
struct Amounts {
  /// By number type: the weights' type; bf16 for products of activations.
  std::array<double, plan::kArithmetics.size()> flops{};
  double attention_flops = 0;  ///< part of flops: products of queries with keys, and with values
  /// Bytes of weights read; for experts the expected number of those that some token chose.
  double weight_bytes = 0;
  /// Part of weight_bytes: weights of less than 8 bits, without experts' weights in fp4.
  double narrow_bytes = 0;
  /// Part of flops: products with the weights of narrow_bytes.
  std::array<double, plan::kArithmetics.size()> narrow_flops{};
  double fp4_expert_bytes = 0;  ///< part of weight_bytes: experts' weights in fp4
  /// Part of flops: products with experts' weights in fp4.
  std::array<double, plan::kArithmetics.size()> fp4_expert_flops{};
  double cache_bytes = 0;  ///< bytes of caches read
  /// Bytes of activations that kernels without products read and write. Products read and write
  /// theirs while they compute.
  double activation_bytes = 0;
  /// Bytes that training reads and writes to quantise the inputs of products, by number type; not
  /// part of activation_bytes (Pricing::add_quantising).
  std::array<double, plan::kArithmetics.size()> quantising_bytes{};
  /// The same for the gradients of their results.
  std::array<double, plan::kArithmetics.size()> gradient_quantising_bytes{};
  /// Number of products (those of one value count once), attentions, norms and look-ups, and four
  /// of experts. Elementwise ops are fused with these.
  i64 launches = 0;

  double all_flops() const;
};

}  // namespace shardtool::ops
