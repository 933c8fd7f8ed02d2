#include "kernels/encode/element.h"
#include "kernels/ops/works.h"
#include "lib/engine/names.h"
#include "lib/engine/run/run.h"

// Products on an accelerator: x is there or is copied there, chunks of rows follow, y stays there.
namespace shardtool::engine {

/// True if the library computes the product. Our kernels compute scaled matrices and 8-bit formats.
template <class N>
bool Run<N>::is_for_library(const MatrixProduct& product) const {
  return inputs_.uses_library && kernels::is_float_storage(product.dtype) &&
         !open_.at(product.rank).scales;
}

template <class N>
void Run<N>::begin_there(const MatrixProduct& product) {
  kernels::Workbench& bench = bench_of(product.rank);
  if (!bench.is_parallel() || is_look_up(product)) return;
  Open& open = open_.at(product.rank);
  open.y_there = bench.zeros(open.y.data);
  if constexpr (std::is_same_v<N, float>) {
    if (is_for_library(product)) {
      ++computed_by_.library;
      open.stored = kernels::Array<std::byte>(open.x.data.size() *
                                              static_cast<size_t>(bits(product.dtype) / 8));
      std::byte* const stored = bench.out(open.stored);
      bench.run(kernels::EncodeFloats{product.dtype, bench.in(open.x.data), std::ssize(open.x.data),
                                      stored});
      open.stored_there = stored;
      return;
    }
  }
  ++computed_by_.kernels;
  open.x_there = bench.in(open.x.data);
  if (!open.scales || open.scales->is_per_row()) return;
  open.scaled = kernels::Array<N>(open.x.data.size());
  open.scaled_there = bench.out(open.scaled);
}

template <class N>
void Run<N>::multiply_there(const MatrixProduct& product, const MatrixBlock& block,
                            const std::byte* there) {
  if (is_look_up(product)) return look_up(product, block);
  for (const GroupBlock& one : by_group(product, block)) {
    multiply_group_there(product, one.block, there + (one.block.bytes - block.bytes),
                         one.first_input);
  }
}

template <class N>
void Run<N>::multiply_group_there(const MatrixProduct& product, const MatrixBlock& block,
                                  const std::byte* there, i64 first_in) {
  const Open& open = open_.at(product.rank);
  if (open.stored_there != nullptr) return multiply_by_library(product, block, there, first_in);
  if (open.scaled_there != nullptr) return multiply_scaled_there(product, block, there, first_in);
  const i64 tokens = inputs_.rows();
  const kernels::StoredMatrix w{product.dtype, there, block.rows.size(), block.columns.size(),
                                block.stride};
  if (product.is_in_out) {
    bench_of(product.rank)
        .accelerator()
        ->run(kernels::ColumnProducts<N>{w,
                                         inputs_.map,
                                         {open.x_there + block.rows.begin, tokens, open.x.width()},
                                         {open.y_there, tokens, open.y.width()}});
  } else {
    bench_of(product.rank)
        .accelerator()
        ->run(kernels::RowProducts<N>{w,
                                      inputs_.map,
                                      {open.x_there + first_in, tokens, open.x.width()},
                                      {open.y_there + block.rows.begin, tokens, open.y.width()}});
  }
}

template <class N>
void Run<N>::multiply_by_library(const MatrixProduct& product, const MatrixBlock& block,
                                 const std::byte* there, i64 first_in) {
  if constexpr (std::is_same_v<N, float>) {
    const Open& open = open_.at(product.rank);
    const i64 tokens = inputs_.rows();
    const i64 width = open.x.width();
    const kernels::StoredMatrix w{product.dtype, there, block.rows.size(), block.columns.size(),
                                  block.stride};
    const i64 first_input = product.is_in_out ? block.rows.begin : first_in;
    const i64 first_output = product.is_in_out ? 0 : block.rows.begin;
    const kernels::StoredMatrix x{product.dtype,
                                  open.stored_there + first_input * bits(product.dtype) / 8, tokens,
                                  product.is_in_out ? w.rows : w.columns, width};
    bench_of(product.rank)
        .accelerator()
        ->run(kernels::NativeProducts{
            w, x, {open.y_there + first_output, tokens, open.y.width()}, product.is_in_out});
  }
}

/// Multiplies one row of blocks after another, each with x scaled for it.
template <class N>
void Run<N>::multiply_scaled_there(const MatrixProduct& product, const MatrixBlock& block,
                                   const std::byte* there, i64 first_in) {
  const Open& open = open_.at(product.rank);
  kernels::Workbench& bench = bench_of(product.rank);
  const i64 tokens = inputs_.rows();
  const i64 columns = block.columns.size();
  for (i64 r = block.rows.begin; r < block.rows.end;) {
    const i64 count = open.scales->run_of_rows(r, block.rows.end);
    bench.run(kernels::ScaleRows<N>{{open.x_there + first_in, tokens, open.x.width()},
                                    columns,
                                    bench.in(open.scales->of_row(r)),
                                    {open.scaled_there, tokens, columns}});
    bench.accelerator()->run(kernels::RowProducts<N>{
        {product.dtype, there + (r - block.rows.begin) * product.row_bytes(), count, columns},
        inputs_.map,
        {open.scaled_there, tokens, columns},
        {open.y_there + r, tokens, open.y.width()}});
    bench.finish();  // gives the factors' memory to the next row of blocks
    r += count;
  }
}

template <class N>
void Run<N>::end_there(const MatrixProduct& product) {
  kernels::Workbench& bench = bench_of(product.rank);
  if (!bench.is_parallel() || is_look_up(product)) return;
  Open& open = open_.at(product.rank);
  if (!open.scales || !open.scales->is_per_row()) return;
  std::vector<N> scales;
  for (i64 r = 0; r < open.y.width(); ++r) scales.push_back(open.scales->of_whole_row(r));
  N* const y = bench.in_out(open.y.data);
  bench.run(kernels::ScaleRows<N>{{y, inputs_.rows(), open.y.width()},
                                  open.y.width(),
                                  bench.in(scales),
                                  {y, inputs_.rows(), open.y.width()}});
  bench.finish();
}

template <class N>
void Run<N>::round_there(kernels::Workbench& bench, Part<N>& part) {
  if constexpr (std::is_same_v<N, float>) {
    const i64 count = std::ssize(part.data);
    auto* const stored =
        bench.template room<std::byte>(static_cast<size_t>(count * bits(inputs_.activations) / 8));
    bench.run(kernels::EncodeFloats{inputs_.activations, bench.in(part.data), count, stored});
    bench.run(
        kernels::DecodeNumbers<float>{inputs_.activations, stored, count, bench.out(part.data)});
    bench.finish();
  }
}

#define SHARDTOOL_INSTANTIATE(N)                                                        \
  template bool Run<N>::is_for_library(const MatrixProduct&) const;                     \
  template void Run<N>::round_there(kernels::Workbench&, Part<N>&);                     \
  template void Run<N>::begin_there(const MatrixProduct&);                              \
  template void Run<N>::multiply_group_there(const MatrixProduct&, const MatrixBlock&,  \
                                             const std::byte*, i64);                    \
  template void Run<N>::multiply_by_library(const MatrixProduct&, const MatrixBlock&,   \
                                            const std::byte*, i64);                     \
  template void Run<N>::multiply_there(const MatrixProduct&, const MatrixBlock&,        \
                                       const std::byte*);                               \
  template void Run<N>::multiply_scaled_there(const MatrixProduct&, const MatrixBlock&, \
                                              const std::byte*, i64);                   \
  template void Run<N>::end_there(const MatrixProduct&);
SHARDTOOL_INSTANTIATE(Field)
SHARDTOOL_INSTANTIATE(double)
SHARDTOOL_INSTANTIATE(float)
#undef SHARDTOOL_INSTANTIATE

}  // namespace shardtool::engine
