#include "kernels/product/product_cuda.h"
#include "kernels/product/product_launch.cuh"

namespace shardtool::kernels::gpu {
namespace {

/// The map of weights that are numbers already.
constexpr auto kNoMap = NumberMap::kBits;

}  // namespace

void add_columns(const StoredMatrix& w, NumberMap map, RowView<const Field> x, RowView<Field> y,
                 Stream stream) {
  add_columns_in_blocks(w, map, x, y, stream);
}
void add_columns(const StoredMatrix& w, RowView<const double> x, RowView<double> y, Stream stream) {
  add_columns_in_blocks(w, kNoMap, x, y, stream);
}
void add_columns(const StoredMatrix& w, RowView<const float> x, RowView<float> y, Stream stream) {
  add_columns_in_blocks(w, kNoMap, x, y, stream);
}

}  // namespace shardtool::kernels::gpu
