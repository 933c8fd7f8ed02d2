#include "lib/engine/weights/block_scales.h"

#include "lib/base/error.h"
#include "lib/engine/names.h"
#include "lib/engine/run/part_axis.h"
#include "lib/model/weight_scales.h"

namespace shardtool::engine {
namespace {

/// Local index of the scale for every local index; 0 for padding.
std::vector<i64> scale_of_each(const index::AxisMap& axis, const PartAxis& scales,
                               const std::string& name) {
  std::vector<i64> found;
  for (const i64 global : globals_of(axis, 0, axis.local_size())) {
    const auto local = global == kPadding ? std::optional<i64>(0) : scales.of_weight(global);
    if (!local) {
      throw Error(ErrorCode::kUnsupported, "a rank lacks the scale of a block that it has")
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

/// Local scale indices for a product's rows and columns.
struct ScalePlaces {
  std::vector<i64> of_row, of_column;
  i64 width = 1;             ///< scales per row of blocks
  bool has_columns = false;  ///< the whole tensor has several scales per row

  bool is_per_row() const { return !has_columns && width == 1; }
};

ScalePlaces places_of(const Side& side, const MatrixProduct& product, size_t tensor) {
  const TensorSpec& spec = side.tensors[tensor];
  const TensorSpec& matrix = side.tensors[product.tensor];
  if (spec.shape.size() > 2) throw unknown_shape(spec, matrix);
  ScalePlaces places;
  places.of_row.resize(static_cast<size_t>(product.rows.local_size()));
  places.of_column.resize(static_cast<size_t>(product.columns.local_size()));
  for (size_t axis = 0; axis < spec.shape.size(); ++axis) {
    const auto unit = model::scale_block(*side.config, matrix.shape[axis], spec.shape[axis], axis);
    if (!unit) throw unknown_shape(spec, matrix);
    const PartAxis part(side.layouts(tensor), axis, product.rank, *unit);
    (axis == 0 ? places.of_row : places.of_column) =
        scale_of_each(axis == 0 ? product.rows : product.columns, part, spec.name);
    if (axis == 1) places.width = part.local_size();
  }
  places.has_columns = spec.shape.size() == 2 && spec.shape[1] > 1;
  return places;
}

}  // namespace

std::optional<size_t> scale_tensor_of(const Side& side, size_t tensor) {
  for (const std::string& name : model::scale_names(side.tensors[tensor].name)) {
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
                                                 const MatrixProduct& product) {
  const auto tensor =
      bits(product.dtype) == 8 ? scale_tensor_of(side, product.tensor) : std::nullopt;
  if (!tensor) return std::nullopt;
  const bool is_in_stack = product.rows.global_size() != side.tensors[product.tensor].shape[0];
  if (product.outer >= 0 || is_in_stack || product.is_in_out)
    throw not_rows_by_columns(side, *tensor);
  const auto stored = load_small<N>(side, map, *tensor, product.rank);
  ScalePlaces places = places_of(side, product, *tensor);
  BlockScales scales;
  scales.block_of_row_ = std::move(places.of_row);
  scales.is_per_row_ = places.is_per_row();
  for (i64 r = 0; places.width > 0 && r < std::ssize(stored.data) / places.width; ++r) {
    std::vector<N>& row = scales.by_block_.emplace_back();
    const auto first = static_cast<size_t>(r * places.width);
    if (scales.is_per_row_) {
      row.push_back(stored.data[first]);
      continue;
    }
    for (const i64 c : places.of_column) row.push_back(stored.data[first + static_cast<size_t>(c)]);
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
