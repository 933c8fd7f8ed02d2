#include "lib/engine/weights/unpacked_weights.h"

#include "lib/base/error.h"
#include "lib/engine/weights/unpacked_rows.h"
#include "lib/layout/gathered.h"

namespace shardtool::engine {

UnpackedWeights::UnpackedWeights(std::unique_ptr<WeightSource> stored,
                                 std::vector<model::PackedWeight> weights,
                                 std::span<const TensorSpec> tensors, ops::LayoutOf layouts)
    : stored_(std::move(stored)),
      weights_(std::move(weights)),
      tensors_(tensors),
      layouts_(std::move(layouts)) {}

void UnpackedWeights::read(const StoredRows& rows, std::span<std::byte> bytes) const {
  if (rows.tensor < first_weight()) return stored_->read(rows, bytes);
  const model::PackedWeight& weight = weights_[rows.tensor - first_weight()];
  const auto region = layouts_(rows.tensor).region(rows.rank);
  if (!region || bytes.empty()) return;
  const size_t last = region->size() - 1;
  const bool is_stack = region->size() > 2;  // [experts, in, out]
  const PackedPart part{weight,
                        tensors_,
                        layouts_,
                        *stored_,
                        (*region)[is_stack ? last - 1 : last],
                        (*region)[is_stack ? last : last - 1]};
  if (weight.spec.dtype == Dtype::kF32) {
    unpack_rows(part, rows, reinterpret_cast<float*>(bytes.data()));
  } else {
    unpack_rows(part, rows, reinterpret_cast<double*>(bytes.data()));
  }
}

const std::byte* UnpackedWeights::read_pages(const StoredRows& rows, i64 bytes,
                                             std::byte* buffer) const {
  if (rows.tensor < first_weight()) return stored_->read_pages(rows, bytes, buffer);
  return WeightSource::read_pages(rows, bytes, buffer);
}

/// The rows' proportional share of all parts.
i64 UnpackedWeights::stored_bytes(const StoredRows& rows, i64 bytes) const {
  if (rows.tensor < first_weight() || bytes == 0) return bytes;
  const model::PackedWeight& weight = weights_[rows.tensor - first_weight()];
  const auto size_of = [&](size_t tensor) {
    const auto region = layouts_(tensor).region(rows.rank);
    if (!region) return i64{0};
    return byte_size(tensors_[tensor].dtype, index::local_shape(*region)).value_or(0);
  };
  i64 stored = 0;
  for (const size_t member : weight.members()) stored += size_of(member);
  const auto share = static_cast<double>(bytes) / static_cast<double>(size_of(rows.tensor));
  return static_cast<i64>(share * static_cast<double>(stored));
}

/// A weight is alike where all its parts are.
std::vector<std::string> UnpackedWeights::alike_along(size_t tensor) const {
  if (tensor < first_weight()) return stored_->alike_along(tensor);
  std::vector<std::string> axes =
      engine::alike_along(*stored_, weights_[tensor - first_weight()].members());
  std::erase_if(
      axes, [&](const std::string& axis) { return layout::is_cut_along(layouts_(tensor), axis); });
  return axes;
}

}  // namespace shardtool::engine
