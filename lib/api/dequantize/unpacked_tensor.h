#pragma once

#include <memory>
#include <optional>

#include "lib/api/dequantize/quantised_weight.h"
#include "lib/exec/chunks/computed.h"
#include "lib/format/manifest/manifest.h"

namespace shardtool::api {

/// A quantised weight as floats, computed from the stored tensors: (code - zero) * scale, rounded
/// once to nearest even (kernels::cast). The product is exact before, in F64 or, where the scales
/// have at most 12 significant bits, in F32; only a divisor of the scales makes a quotient, which
/// has 53 bits.
class UnpackedTensor final : public exec::ComputedTensor {
 public:
  /// `dtype` is F32, F16 or BF16.
  UnpackedTensor(QuantisedWeight weight, Dtype dtype);

  /// Also throws kDataMismatch for a recorded shape that is not the weight's, and for a group that
  /// does not exist.
  void compute(const exec::ComputedBox& box, std::span<const exec::SourceFile> files,
               exec::ComputedReport& report) const override;
  void check(const exec::ComputedReport& whole) const override;
  int scratch_bits() const override { return 24; }

  const QuantisedWeight& weight() const { return weight_; }
  Dtype dtype() const { return dtype_; }
  /// Bytes of the stored tensors.
  i64 stored_bytes() const;
  /// Record for the manifest; without digests unless all elements were computed.
  format::DequantizeRecord record(const exec::ComputedReport* whole) const;

 private:
  QuantisedWeight weight_;
  Dtype dtype_;
};

}  // namespace shardtool::api
