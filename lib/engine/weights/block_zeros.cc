#include "lib/engine/weights/block_zeros.h"

#include <algorithm>
#include <map>

namespace shardtool::engine {

template <class N>
std::optional<BlockZeros<N>> BlockZeros<N>::of(const Side& side, kernels::NumberMap map,
                                               const MatrixProduct& product) {
  if (bits(product.dtype) != 8) return std::nullopt;
  const auto scales = scale_tensor_of(side, product.tensor);
  const auto zeros = zero_tensor_of(side, product.tensor);
  if (!scales || !zeros) return std::nullopt;
  BlockZeros found;
  found.scales_ = BlockGrid<N>::of(side, map, product, *scales);
  found.zeros_ = BlockGrid<N>::of(side, map, product, *zeros);
  std::map<std::pair<i64, i64>, size_t> known;
  for (size_t c = 0; c < found.scales_.of_column.size(); ++c) {
    const std::pair block(found.scales_.of_column[c], found.zeros_.of_column[c]);
    const auto [at, is_new] = known.try_emplace(block, found.blocks_.size());
    if (is_new) found.blocks_.push_back(block);
    found.block_of_column_.push_back(at->second);
  }
  return found;
}

template <class N>
void BlockZeros<N>::subtract(const MatrixProduct& product, const Part<N>& x, i64 tokens,
                             Part<N>& y) const {
  const i64 rows = product.group_rows > 0 ? product.group_rows : product.rows.local_size();
  std::vector<N> sums(blocks_.size());
  for (i64 t = 0; t < tokens; ++t) {
    N* const results = y.row(t);
    // Padding stays as the product with the codes left it.
    for (const index::Piece& piece : product.rows.pieces()) {
      for (i64 r = piece.local, group = -1; r < piece.local_end(); ++r) {
        if (r / rows != group) {
          group = r / rows;
          std::ranges::fill(sums, N{});
          const N* const inputs = x.row(t) + group * product.columns.global_size();
          for (size_t k = 0; k < block_of_column_.size(); ++k)
            sums[block_of_column_[k]] += inputs[k];
        }
        const i64 of_scales = scales_.of_row[static_cast<size_t>(r)];
        const i64 of_zeros = zeros_.of_row[static_cast<size_t>(r)];
        for (size_t b = 0; b < blocks_.size(); ++b) {
          const auto& [scale, zero] = blocks_[b];
          results[r] -= scales_.at(of_scales, scale) * zeros_.at(of_zeros, zero) * sums[b];
        }
      }
    }
  }
}

template class BlockZeros<Field>;
template class BlockZeros<double>;
template class BlockZeros<float>;

}  // namespace shardtool::engine
