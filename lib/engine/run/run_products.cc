#include "lib/engine/run/run.h"
#include "lib/ops/part_moves.h"
#include "lib/ops/patches/patch_grid.h"

namespace shardtool::engine {

using index::AxisMap;

/// Multiplies the table by random numbers per row instead of looking tokens up, so that every row
/// is tested. Used for residues if no other product reads the table.
template <class N>
void Run<N>::embed_probe(const MatrixProduct& product, Part<N>& x) const {
  if constexpr (is_field<N>) {
    const auto& op = std::get<ops::Embed>(step_->op->op->kind);
    const std::uint64_t table = kernels::hashed(inputs_.seed, static_cast<std::uint64_t>(op.by));
    for (i64 t = 0; t < inputs_.rows(); ++t) {
      const std::uint64_t seed = kernels::hashed(table, static_cast<std::uint64_t>(t));
      for (const index::Piece& piece : product.rows.pieces()) {
        for (i64 i = 0; i < piece.size; ++i) {
          x.row(t)[piece.local + i] =
              kernels::field_random(seed, static_cast<std::uint64_t>(piece.global + i));
        }
      }
    }
  }
}

template <class N>
Part<N> Run<N>::product_input(const MatrixProduct& product) {
  if (product.expert >= 0) return expert_input(product);
  if (!std::holds_alternative<ops::Embed>(step_->op->op->kind)) {
    return aligned(bench_of(product.rank), input(0, product.rank), product.inputs(), inputs_.rows(),
                   step_->op->op->in.front());
  }
  Part<N> x = empty_part<N>(product.rows, inputs_.rows());
  embed_probe(product, x);
  return x;
}

/// Returns true if both open products have the same output, because the bits of their inputs are
/// the same. Scales and zero points are not compared, nor values on an accelerator.
template <class N>
bool Run<N>::has_equal_operands(const MatrixProduct& product, const MatrixProduct& first) const {
  if (product.rank == first.rank || benches_.front().is_parallel()) return false;
  const Open& own = open_.at(product.rank);
  const Open& other = open_.at(first.rank);
  const bool is_scaled = own.scales || own.zeros || other.scales || other.zeros;
  return !is_scaled && product.rows == first.rows && product.columns == first.columns &&
         has_same_numbers(own.x, other.x);
}

template <class N>
void Run<N>::begin(const MatrixProduct& product, const MatrixProduct& first) {
  Open& open = open_[product.rank];
  open.scales = BlockScales<N>::of(side_, inputs_.map, product);
  if (!is_look_up(product)) {
    open.zeros = BlockZeros<N>::of(side_, inputs_.map, product);
    open.x = product_input(product);
  }
  if (has_equal_operands(product, first)) {
    open.x = {};
    open.repeated = first.rank;
    return;
  }
  open.y = empty_part<N>(product.outputs(), inputs_.rows());
  begin_there(product);
}

template <class N>
bool Run<N>::is_look_up(const MatrixProduct& product) const {
  const bool is_table = std::holds_alternative<ops::Embed>(step_->op->op->kind);
  return is_table && (!is_field<N> || product.is_looked_up);
}

/// Looks up the table's rows for tokens, positions or segments. Tokens beyond the end of a smaller
/// table get its first row.
template <class N>
void Run<N>::look_up(const MatrixProduct& product, const MatrixBlock& block) {
  const auto& op = std::get<ops::Embed>(step_->op->op->kind);
  const auto by = op.by;
  const auto offset = static_cast<i64>(mapping::value_of(op.offset, side_.model->config));
  const AxisMap where = index::inverse(product.rows);
  const i64 row_bytes = block.stride * bits(product.dtype) / 8;
  Part<N>& y = open_.at(product.rank).y;
  for (i64 t = 0; t < inputs_.rows(); ++t) {
    i64 row = 0;
    if (by == ops::Embed::By::kToken) row = inputs_.tokens.at(static_cast<size_t>(t));
    if (by == ops::Embed::By::kToken && row >= where.local_size()) row = 0;
    if (by == ops::Embed::By::kPosition) row = offset + t % inputs_.length;
    if (by == ops::Embed::By::kPatch) row = row_of_patch(op.patches, product, t);
    const auto local = row < where.local_size() ? where(row) : std::nullopt;
    if (!local || *local < block.rows.begin || *local >= block.rows.end) continue;
    to_numbers(product.dtype, inputs_.map, block.bytes + (*local - block.rows.begin) * row_bytes,
               block.columns.size(), y.row(t) + block.columns.begin);
  }
}

template <class N>
i64 Run<N>::row_of_patch(const ops::Patches& patches, const MatrixProduct& product,
                         i64 token) const {
  const i64 position = token % inputs_.length;
  const i64 others = patches.has_class ? 1 : 0;
  if (patches.has_class && position + 1 == inputs_.length) return 0;
  const ops::PatchGrid grid = ops::grid_of(patches, *side_.model, inputs_.length);
  const auto [row, column] = grid.place(position);
  const i64 side = ops::root_of(product.rows.global_size() - others);
  return others + row % side * side + column % side;
}

template <class N>
void Run<N>::multiply(const MatrixProduct& product, const MatrixBlock& block) {
  if (is_look_up(product)) return look_up(product, block);
  for (const GroupBlock& one : by_group(product, block)) {
    multiply_group(product, one.block, one.first_input);
  }
}

/// Multiplies by a block whose inputs begin at `first_input`.
template <class N>
void Run<N>::multiply_group(const MatrixProduct& product, const MatrixBlock& block,
                            i64 first_input) {
  Open& open = open_.at(product.rank);
  if (open.scales) return multiply_scaled(product, block, first_input);
  const Part<N>& x = open.x;  // read by several threads
  const i64 tokens = inputs_.rows();
  const kernels::StoredMatrix w{product.dtype, block.bytes, block.rows.size(), block.columns.size(),
                                block.stride};
  if (product.is_in_out) {
    add_columns<N>(w, inputs_.map, {x.data.data() + block.rows.begin, tokens, x.width()},
                   {open.y.data.data() + block.columns.begin, tokens, open.y.width()});
  } else {
    multiply_rows<N>(w, inputs_.map, {x.data.data() + first_input, tokens, x.width()},
                     {open.y.data.data() + block.rows.begin, tokens, open.y.width()});
  }
}

/// Multiplies by a block of a quantised matrix q * s. A scale per row multiplies the output; scales
/// per block multiply x, once for all rows with the same scales.
template <class N>
void Run<N>::multiply_scaled(const MatrixProduct& product, const MatrixBlock& block,
                             i64 first_input) {
  Open& open = open_.at(product.rank);
  const BlockScales<N>& scales = *open.scales;
  const i64 tokens = inputs_.rows();
  const i64 columns = block.columns.size();
  const i64 row_bytes = block.stride * bits(product.dtype) / 8;
  const Part<N>& whole_x = open.x;  // read by several threads
  Part<N> scaled;
  if (!scales.is_per_row()) scaled = empty_part<N>(whole_x.features, tokens);
  for (i64 r = block.rows.begin; r < block.rows.end;) {
    const i64 count =
        scales.is_per_row() ? block.rows.end - r : scales.run_of_rows(r, block.rows.end);
    if (!scales.is_per_row()) {
      const std::vector<N>& factors = scales.of_row(r);
      for (i64 t = 0; t < tokens; ++t) {
        const N* const from = whole_x.row(t) + first_input;
        N* const row = scaled.row(t) + first_input;
        for (i64 k = 0; k < columns; ++k) row[k] = from[k] * factors[static_cast<size_t>(k)];
      }
    }
    const Part<N>& x = scales.is_per_row() ? whole_x : scaled;
    multiply_rows<N>({product.dtype, block.bytes + (r - block.rows.begin) * row_bytes, count,
                      columns, block.stride},
                     inputs_.map, {x.data.data() + first_input, tokens, x.width()},
                     {open.y.data.data() + r, tokens, open.y.width()});
    r += count;
  }
  for (i64 r = block.rows.begin; r < block.rows.end && scales.is_per_row(); ++r) {
    for (i64 t = 0; t < tokens; ++t) open.y.row(t)[r] *= scales.of_whole_row(r);
  }
}

template <class N>
void Run<N>::end(const MatrixProduct& product) {
  end_there(product);
  Open open = std::move(open_.extract(product.rank).mapped());
  if (open.repeated) open.y = open_.at(*open.repeated).y;
  if (open.zeros) open.zeros->subtract(product, open.x, inputs_.rows(), open.y);
  Part<N> y = std::move(open.y);
  if (product.expert >= 0) return end_expert(product, std::move(y));
  make(step_->op->op->out[0], product.rank, std::move(y));
}

#define SHARDTOOL_INSTANTIATE(N)                                            \
  template void Run<N>::begin(const MatrixProduct&, const MatrixProduct&);  \
  template bool Run<N>::is_look_up(const MatrixProduct&) const;             \
  template void Run<N>::look_up(const MatrixProduct&, const MatrixBlock&);  \
  template void Run<N>::multiply(const MatrixProduct&, const MatrixBlock&); \
  template void Run<N>::end(const MatrixProduct&);
SHARDTOOL_INSTANTIATE(Field)
SHARDTOOL_INSTANTIATE(double)
SHARDTOOL_INSTANTIATE(float)
#undef SHARDTOOL_INSTANTIATE

}  // namespace shardtool::engine
