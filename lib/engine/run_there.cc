#include "shardtool/engine/numbers.h"
#include "shardtool/engine/run.h"

// The products of a run by an accelerator: x goes there, the rows of the matrix come by, y returns.
namespace shardtool::engine {

template <class N>
void Run<N>::begin_there(const Product& product) {
  if (bench_.accelerator() == nullptr || is_look_up(product)) return;
  x_there_ = bench_.in(x_.data);
  y_there_ = bench_.in_out(y_.data);
  scaled_there_ = nullptr;
  if (scales_ && !scales_->is_per_row()) scaled_there_ = bench_.template room<N>(x_.data.size());
}

template <class N>
void Run<N>::multiply_there(const Product& product, i64 begin, i64 end, const std::byte* bytes,
                            const std::byte* there) {
  if (is_look_up(product)) return look_up(product, begin, end, bytes);
  if (scaled_there_ != nullptr) return multiply_scaled_there(product, begin, end, there);
  const i64 rows = inputs_.rows();
  const kernels::StoredMatrix w{product.dtype, there, end - begin, product.columns.local_size()};
  if (product.is_in_out) {
    bench_.accelerator()->run(kernels::ColumnProducts<N>{
        w, inputs_.map, {x_there_ + begin, rows, x_.width()}, {y_there_, rows, y_.width()}});
  } else {
    bench_.accelerator()->run(kernels::RowProducts<N>{
        w, inputs_.map, {x_there_, rows, x_.width()}, {y_there_ + begin, rows, y_.width()}});
  }
}

/// Row after row of blocks, each with its own x.
template <class N>
void Run<N>::multiply_scaled_there(const Product& product, i64 begin, i64 end,
                                   const std::byte* there) {
  const i64 tokens = inputs_.rows();
  const i64 columns = x_.width();
  for (i64 r = begin; r < end;) {
    const i64 count = scales_->run_of_rows(r, end);
    bench_.run(kernels::ScaleRows<N>{{x_there_, tokens, columns},
                                     columns,
                                     bench_.in(scales_->of_row(r)),
                                     {scaled_there_, tokens, columns}});
    bench_.accelerator()->run(kernels::RowProducts<N>{
        {product.dtype, there + (r - begin) * product.row_bytes(), count, columns},
        inputs_.map,
        {scaled_there_, tokens, columns},
        {y_there_ + r, tokens, y_.width()}});
    r += count;
  }
}

template <class N>
void Run<N>::end_there(const Product& product) {
  if (bench_.accelerator() == nullptr || is_look_up(product)) return;
  bench_.finish();
  if (!scales_ || !scales_->is_per_row()) return;
  for (i64 t = 0; t < inputs_.rows(); ++t) {
    for (i64 r = 0; r < y_.width(); ++r) y_.row(t)[r] *= scales_->of_whole_row(r);
  }
}

#define SHARDTOOL_INSTANTIATE(N)                                                           \
  template void Run<N>::begin_there(const Product&);                                       \
  template void Run<N>::multiply_there(const Product&, i64, i64, const std::byte*,         \
                                       const std::byte*);                                  \
  template void Run<N>::multiply_scaled_there(const Product&, i64, i64, const std::byte*); \
  template void Run<N>::end_there(const Product&);
SHARDTOOL_INSTANTIATE(Field)
SHARDTOOL_INSTANTIATE(double)
SHARDTOOL_INSTANTIATE(float)
#undef SHARDTOOL_INSTANTIATE

}  // namespace shardtool::engine
