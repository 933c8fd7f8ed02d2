#include "kernels/product/product_cuda.h"
#include "kernels/product/product_launch.cuh"

namespace shardtool::kernels::gpu {

void multiply_rows(const StoredMatrix& w, NumberMap map, RowView<const Field> x, RowView<Field> y,
                   Stream stream) {
  multiply_in_blocks<Rows, Field>({w, x, y, stream}, map);
}
void multiply_rows(const StoredMatrix& w, RowView<const double> x, RowView<double> y,
                   Stream stream) {
  multiply_in_blocks<Rows, double>({w, x, y, stream});
}
void multiply_rows(const StoredMatrix& w, RowView<const float> x, RowView<float> y, Stream stream) {
  multiply_in_blocks<Rows, float>({w, x, y, stream});
}

}  // namespace shardtool::kernels::gpu
