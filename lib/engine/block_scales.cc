#include "shardtool/engine/block_scales.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "shardtool/base/error.h"
#include "shardtool/engine/numbers.h"
#include "shardtool/engine/scale_names.h"

namespace shardtool::engine {
namespace {

/// Indices that one scale stands for: of an axis of `extent` in `scales` of them.
i64 block_size(const Side& side, i64 extent, i64 scales, size_t axis) {
  if (scales == 1) return std::max<i64>(extent, 1);
  if (scales == extent) return 1;
  const auto configured =
      side.config->size(fmt::format("quantization_config.weight_block_size[{}]", axis));
  const i64 size = configured.value_or(ceil_div(extent, scales));
  return ceil_div(extent, size) == scales ? size : 0;
}

/// The global index of every local one; -1 for padding.
std::vector<i64> globals_of(const index::AxisMap& map) {
  std::vector<i64> globals(static_cast<size_t>(map.local_size()), -1);
  for (const index::Piece& piece : map.pieces()) {
    for (i64 i = 0; i < piece.size; ++i) {
      globals[static_cast<size_t>(piece.local + i)] = piece.global + i;
    }
  }
  return globals;
}

/// For every local index the local index of its scale; 0 for padding.
std::vector<i64> scale_of_each(const index::AxisMap& axis, const index::AxisMap& scales, i64 block,
                               const std::string& name) {
  std::vector<i64> found;
  const index::AxisMap where = index::inverse(scales);
  for (const i64 global : globals_of(axis)) {
    const auto local = global < 0 ? std::optional<i64>(0) : where(global / block);
    if (!local) {
      throw Error(ErrorCode::kUnsupported, "a device lacks the scale of a block that it has")
          .tensor(name);
    }
    found.push_back(*local);
  }
  return found;
}

Error unknown_shape(const TensorSpec& scales, const TensorSpec& matrix) {
  return Error(ErrorCode::kUnsupported, "scales are not one, one per row or one per block")
      .tensor(scales.name)
      .note("found", to_string(scales.shape))
      .note("matrix", to_string(matrix.shape));
}

Error not_rows_by_columns(const Side& side, size_t scales) {
  return std::move(Error(ErrorCode::kUnsupported,
                         "scales are known of matrices that are stored as [out, in] alone")
                       .tensor(side.tensors[scales].name));
}

}  // namespace

std::optional<size_t> scale_tensor_of(const Side& side, size_t tensor) {
  for (const std::string& name : scale_names(side.tensors[tensor].name)) {
    const auto found = side.by_name.find(name);
    if (found != side.by_name.end()) return found->second;
  }
  return std::nullopt;
}

std::vector<size_t> stored_behind(const Side& side, size_t tensor) {
  const auto packed = side.unpacked.find(tensor);
  if (packed != side.unpacked.end()) return packed->second.members;
  std::vector<size_t> tensors{tensor};
  if (bits(side.tensors[tensor].dtype) != 8) return tensors;
  if (const auto scales = scale_tensor_of(side, tensor)) tensors.push_back(*scales);
  return tensors;
}

template <class N>
std::optional<BlockScales<N>> BlockScales<N>::of(const Side& side, kernels::NumberMap map,
                                                 const Product& product) {
  const auto tensor =
      bits(product.dtype) == 8 ? scale_tensor_of(side, product.tensor) : std::nullopt;
  if (!tensor) return std::nullopt;
  const bool is_in_stack = product.rows.global_size() != side.tensors[product.tensor].shape[0];
  if (product.outer >= 0 || is_in_stack || product.is_in_out)
    throw not_rows_by_columns(side, *tensor);
  const TensorSpec& spec = side.tensors[*tensor];
  const TensorSpec& matrix = side.tensors[product.tensor];
  auto stored = load_small<N>(side, map, *tensor, product.rank);
  while (stored.region.size() < 2) stored.region.push_back(index::AxisMap::identity(1));
  const i64 rows = block_size(side, matrix.shape[0], stored.region[0].global_size(), 0);
  const i64 columns = block_size(side, matrix.shape[1], stored.region[1].global_size(), 1);
  if (stored.region.size() != 2 || rows == 0 || columns == 0) throw unknown_shape(spec, matrix);
  BlockScales scales;
  scales.block_of_row_ = scale_of_each(product.rows, stored.region[0], rows, spec.name);
  const auto column = scale_of_each(product.columns, stored.region[1], columns, spec.name);
  const i64 stride = stored.region[1].local_size();
  scales.is_per_row_ = stored.region[1].global_size() == 1;
  for (i64 r = 0; r < stored.region[0].local_size(); ++r) {
    std::vector<N>& row = scales.by_block_.emplace_back();
    const size_t first = static_cast<size_t>(r * stride);
    if (scales.is_per_row_) {
      row.push_back(stored.data[first]);
      continue;
    }
    for (const i64 c : column) row.push_back(stored.data[first + static_cast<size_t>(c)]);
  }
  return scales;
}

template <class N>
i64 BlockScales<N>::run_of_rows(i64 begin, i64 end) const {
  i64 r = begin;
  while (r < end &&
         block_of_row_[static_cast<size_t>(r)] == block_of_row_[static_cast<size_t>(begin)]) {
    ++r;
  }
  return r - begin;
}

template <class N>
const std::vector<N>& BlockScales<N>::of_row(i64 r) const {
  return by_block_[static_cast<size_t>(block_of_row_[static_cast<size_t>(r)])];
}

template class BlockScales<Field>;
template class BlockScales<double>;
template class BlockScales<float>;

}  // namespace shardtool::engine
