#pragma once

#include <span>

#include "lib/base/tensor_spec.h"
#include "lib/ops/amounts.h"
#include "lib/ops/placed_value.h"
#include "lib/plan/collective/hardware_profile.h"

namespace shardtool::ops {

/// The tokens of a pass, and the positions that each attends to. After an encoder, which reads the
/// prompt, a prefill has one token per sequence.
struct Phase {
  i64 tokens = 0;
  i64 sequences = 0;
  bool is_prefill = false;
  i64 context = 0;
  i64 cached = 0;  ///< first positions of a prefill's sequence, which the cache has already
};

/// The cost of reading one element of a stored weight and multiplying with it.
struct WeightRead {
  double bits = 16;  ///< per element; of a packed weight with its share of the scales
  plan::Arithmetic arithmetic = plan::Arithmetic::kBf16;  ///< of its products

  bool operator==(const WeightRead&) const = default;
};
/// Returns the cost for a weight that is stored as numbers of this dtype. Weights of 8 bits or less
/// are multiplied with activations of as many bits. Their scales are not counted: one per row or
/// block.
WeightRead read_of(Dtype dtype);

/// One op on one device in one phase, and the amounts to which its price is added.
struct Pricing {
  const ModelSizes& model;
  std::span<const WeightRead> reads;  ///< by tensor
  const Step& step;
  Phase phase;     ///< with the device's own tokens
  i64 tokens;      ///< tokens that the device computes
  i64 all_tokens;  ///< tokens of all devices
  i64 layer;
  i64 kv_cache_bits;    ///< bits per element
  i64 activation_bits;  ///< the same of values
  Amounts& sum;

  /// The cost of the op's weights, which is that of the first one.
  WeightRead read() const;
  plan::Arithmetic arithmetic() const { return read().arithmetic; }
  /// Bytes of the op's weights on the device.
  double weight_bytes() const;
  void add_flops(plan::Arithmetic of, double flops) { sum.flops[static_cast<size_t>(of)] += flops; }
  /// True for weights of less than 8 bits.
  bool is_narrow() const { return read().bits < 8; }
  /// Adds products with narrow weights and reads of these, which are counted elsewhere, too.
  void add_narrow(double flops, double bytes) {
    sum.narrow_bytes += bytes;
    sum.narrow_flops[static_cast<size_t>(arithmetic())] += flops;
  }
  /// Adds one read of the weights, and `times` products with them per token.
  void add_products(i64 times = 1);
  /// Adds one read or write of so many elements.
  void add_values(double elements) {
    sum.activation_bytes += elements * static_cast<double>(activation_bits) / 8;
  }
  /// Adds what training reads and writes to quantise so many elements of a product's inputs, and
  /// later of the gradients of its results; nothing for weights of more than 8 bits. A kernel of
  /// its own reads a value, and writes it quantised by rows and by columns: the products of the
  /// backward pass sum along other axes (Transformer Engine, Performance considerations of
  /// low-precision training, "Handling transposes").
  ///     (bits of a value + 2 x bits of a quantised one) / 8 bytes per element
  void add_quantising(double inputs, double results);
  /// Adds a read of the first input, and a write of the first output. The other inputs of an op are
  /// in registers, where the ops that made them left them.
  void add_values();
};

}  // namespace shardtool::ops
