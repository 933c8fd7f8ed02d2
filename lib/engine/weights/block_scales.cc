#include "lib/engine/weights/block_scales.h"

namespace shardtool::engine {

template <class N>
std::optional<BlockScales<N>> BlockScales<N>::of(const Side& side, kernels::NumberMap map,
                                                 const MatrixProduct& product) {
  const auto tensor =
      bits(product.dtype) == 8 ? scale_tensor_of(side, product.tensor) : std::nullopt;
  if (!tensor) return std::nullopt;
  const auto grid = BlockGrid<N>::of(side, map, product, *tensor);
  BlockScales scales;
  scales.block_of_row_ = grid.of_row;
  scales.is_per_row_ = !grid.has_columns && grid.width == 1;
  for (i64 r = 0; r < grid.rows(); ++r) {
    std::vector<N>& row = scales.by_block_.emplace_back();
    if (scales.is_per_row_) {
      row.push_back(grid.at(r, 0));
      continue;
    }
    for (const i64 c : grid.of_column) row.push_back(grid.at(r, c));
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
