#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "lib/engine/weights/weight_source.h"
#include "lib/model/flow/flow.h"
#include "lib/model/packed_format.h"

namespace shardtool::engine {

/// The tensors of a checkpoint and, behind them, the weights that some of them are the parts of:
/// what a device has of a weight is made of what it has of the parts, as an engine would make it.
/// Weights whose stored rows are inputs are read as [in, out].
class UnpackedWeights final : public WeightSource {
 public:
  /// `tensors` and `layouts` are those of `stored` with one for every weight behind them; what they
  /// refer to outlives this.
  UnpackedWeights(std::unique_ptr<WeightSource> stored, std::vector<model::PackedWeight> weights,
                  std::span<const TensorSpec> tensors, ops::LayoutOf layouts);

  /// Throws kDataMismatch where an input is in a group that the device lacks.
  void read(const StoredRows& rows, std::span<std::byte> bytes) const override;
  const std::byte* read_pages(const StoredRows& rows, i64 bytes, std::byte* buffer) const override;
  i64 stored_bytes(const StoredRows& rows, i64 bytes) const override;

 private:
  size_t first_weight() const { return tensors_.size() - weights_.size(); }

  std::unique_ptr<WeightSource> stored_;
  std::vector<model::PackedWeight> weights_;
  std::span<const TensorSpec> tensors_;
  ops::LayoutOf layouts_;
};

}  // namespace shardtool::engine
