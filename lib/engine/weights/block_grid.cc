#include "lib/engine/weights/block_grid.h"

#include "lib/base/error.h"
#include "lib/engine/run/part_axis.h"
#include "lib/model/weight_scales.h"

namespace shardtool::engine {
namespace {

/// Local index of the block for every local index; 0 for padding.
std::vector<i64> block_of_each(const index::AxisMap& axis, const PartAxis& blocks,
                               const std::string& name) {
  std::vector<i64> found;
  for (const i64 global : globals_of(axis, 0, axis.local_size())) {
    const auto local = global == kPadding ? std::optional<i64>(0) : blocks.of_weight(global);
    if (!local) {
      throw Error(ErrorCode::kUnsupported,
                  "a rank lacks the scale or the zero point of a block that it has")
          .tensor(name);
    }
    found.push_back(*local);
  }
  return found;
}

Error unknown_shape(const TensorSpec& numbers, const TensorSpec& matrix) {
  return Error(ErrorCode::kUnsupported,
               "scales or zero points are not one, one per row or one per block")
      .tensor(numbers.name)
      .note("found", to_string(numbers.shape))
      .note("matrix", to_string(matrix.shape));
}

Error not_rows_by_columns(const TensorSpec& numbers) {
  return Error(ErrorCode::kUnsupported,
               "scales are known of matrices that are stored as [out, in] alone")
      .tensor(numbers.name);
}

}  // namespace

std::optional<size_t> scale_tensor_of(const Side& side, size_t tensor) {
  for (const std::string& name : model::scale_names(side.tensors[tensor].name)) {
    const auto found = side.by_name.find(name);
    if (found != side.by_name.end()) return found->second;
  }
  return std::nullopt;
}

std::optional<size_t> zero_tensor_of(const Side& side, size_t tensor) {
  const auto found = side.by_name.find(model::zero_point_name(side.tensors[tensor].name));
  return found == side.by_name.end() ? std::nullopt : std::optional(found->second);
}

std::vector<size_t> stored_behind(const Side& side, size_t tensor) {
  const auto packed = side.unpacked.find(tensor);
  if (packed != side.unpacked.end()) return packed->second.members;
  std::vector<size_t> tensors{tensor};
  if (bits(side.tensors[tensor].dtype) != 8) return tensors;
  const auto scales = scale_tensor_of(side, tensor);
  if (!scales) return tensors;
  tensors.push_back(*scales);
  if (const auto zeros = zero_tensor_of(side, tensor)) tensors.push_back(*zeros);
  return tensors;
}

std::vector<size_t> stored_behind(const Side& side, const ops::BoundOp& op) {
  std::vector<size_t> tensors;
  for (const ops::BoundWeight& weight : op.weights) {
    for (const size_t tensor : weight) {
      const auto behind = stored_behind(side, tensor);
      tensors.insert(tensors.end(), behind.begin(), behind.end());
    }
  }
  return tensors;
}

template <class N>
BlockGrid<N> BlockGrid<N>::of(const Side& side, kernels::NumberMap map,
                              const MatrixProduct& product, size_t tensor) {
  const TensorSpec& spec = side.tensors[tensor];
  const TensorSpec& matrix = side.tensors[product.tensor];
  const bool is_in_stack = product.rows.global_size() != matrix.shape[0];
  if (product.outer >= 0 || is_in_stack || product.is_in_out) throw not_rows_by_columns(spec);
  if (spec.shape.size() > 2) throw unknown_shape(spec, matrix);
  BlockGrid grid;
  grid.of_row.resize(static_cast<size_t>(product.rows.local_size()));
  grid.of_column.resize(static_cast<size_t>(product.columns.local_size()));
  for (size_t axis = 0; axis < spec.shape.size(); ++axis) {
    const auto unit = model::scale_block(*side.config, matrix.shape[axis], spec.shape[axis], axis);
    if (!unit) throw unknown_shape(spec, matrix);
    const PartAxis part(side.layouts(tensor), axis, product.rank, *unit);
    (axis == 0 ? grid.of_row : grid.of_column) =
        block_of_each(axis == 0 ? product.rows : product.columns, part, spec.name);
    if (axis == 1) grid.width = part.local_size();
  }
  grid.has_columns = spec.shape.size() == 2 && spec.shape[1] > 1;
  grid.numbers = load_small<N>(side, map, tensor, product.rank).data;
  return grid;
}

template struct BlockGrid<Field>;
template struct BlockGrid<double>;
template struct BlockGrid<float>;

}  // namespace shardtool::engine
