#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/engine/weights/weight_source.h"
#include "lib/model/flow/flow.h"
#include "lib/model/packed_format.h"

namespace shardtool::engine {

/// Tensors of a checkpoint, followed by the weights that are unpacked from some of them. A device's
/// part of a weight is unpacked from its parts of those tensors, as an engine would do. Weights
/// whose stored rows are inputs are read as [in, out].
class UnpackedWeights final : public WeightSource {
 public:
  /// `tensors` and `layouts` are those of `stored`, followed by one per weight; their referents
  /// must outlive this object.
  UnpackedWeights(std::unique_ptr<WeightSource> stored, std::vector<model::PackedWeight> weights,
                  std::span<const TensorSpec> tensors, ops::LayoutOf layouts);

  /// Throws kDataMismatch if an input is in a group that the device lacks.
  void read(const StoredRows& rows, std::span<std::byte> bytes) const override;
  const std::byte* read_pages(const StoredRows& rows, i64 bytes, std::byte* buffer) const override;
  i64 stored_bytes(const StoredRows& rows, i64 bytes) const override;
  std::vector<std::string> alike_along(size_t tensor) const override;

 private:
  size_t first_weight() const { return tensors_.size() - weights_.size(); }

  std::unique_ptr<WeightSource> stored_;
  std::vector<model::PackedWeight> weights_;
  std::span<const TensorSpec> tensors_;
  ops::LayoutOf layouts_;
};

}  // namespace shardtool::engine
