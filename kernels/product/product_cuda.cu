#include "kernels/device/launch.cuh"
#include "kernels/product/product_cuda.h"
#include "kernels/product/sums.h"

namespace shardtool::kernels::gpu {
namespace {

constexpr unsigned kAll = 0xffffffffU;

__device__ Field shuffled(Field x, int distance) {
  return {__shfl_xor_sync(kAll, x.v, distance)};
}

/// One row of w and kTokens rows of x per warp.
template <int kTokens>
__global__ void residue_rows(const ResidueRows<kTokens> rows, RowView<Field> y) {
  const i64 groups = ceil_div(rows.x.count, kTokens);
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  for (i64 i = thread_index() / kWarp; i < groups * rows.matrix.w.rows;
       i += thread_count() / kWarp) {
    const i64 r = i / groups;
    const i64 t = i % groups * kTokens;
    Field sums[kTokens];
    rows.add_lane(r, t, lane, kWarp, sums);
    for (int j = 0; j < kTokens; ++j) {
      for (int distance = kWarp / 2; distance > 0; distance /= 2) {
        sums[j] += shuffled(sums[j], distance);
      }
      if (lane == 0 && t + j < rows.x.count) y.row(t + j)[r] = sums[j];
    }
  }
}

/// One row of w and one row of x per eight lanes. Lanes without an item repeat the last one, since
/// all lanes of a warp must take part in the shuffle.
template <class T>
__global__ void real_rows(const RealRows<T> rows, RowView<T> y) {
  constexpr int kLanes = RealRows<T>::kLanes;
  const i64 items = rows.x.count * rows.w.rows;
  const int lane = static_cast<int>(threadIdx.x % kLanes);
  for (i64 warp = thread_index() / kWarp; warp * (kWarp / kLanes) < items;
       warp += thread_count() / kWarp) {
    const i64 own = warp * (kWarp / kLanes) + threadIdx.x % kWarp / kLanes;
    const i64 i = own < items ? own : items - 1;
    const i64 r = i / rows.x.count;
    const i64 t = i % rows.x.count;
    T sum = rows.lane(r, t, lane);
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(kAll, sum, distance);
    }
    if (lane == 0 && own < items) y.row(t)[r] = sum;
  }
}

template <int kTokens>
void launch_residue_rows(const ResidueMatrix& matrix, RowView<const Field> x, RowView<Field> y,
                         Stream stream) {
  const i64 warps = matrix.w.rows * ceil_div(x.count, kTokens);
  if (warps == 0) return;
  residue_rows<kTokens>
      <<<blocks_of(warps * kWarp), kThreads, 0, stream>>>(ResidueRows<kTokens>{matrix, x}, y);
  require(cudaGetLastError(), "the launch of residue_rows");
}

template <class T>
void launch_real_rows(const StoredMatrix& w, RowView<const T> x, RowView<T> y, Stream stream) {
  const i64 items = w.rows * x.count;
  if (items == 0) return;
  real_rows<T>
      <<<blocks_of(items * RealRows<T>::kLanes), kThreads, 0, stream>>>(RealRows<T>{w, x}, y);
  require(cudaGetLastError(), "the launch of real_rows");
}

}  // namespace

template void run(const ResidueColumns&, Stream);
template void run(const RealColumns<double>&, Stream);
template void run(const RealColumns<float>&, Stream);

void multiply_rows(const StoredMatrix& w, NumberMap map, RowView<const Field> x, RowView<Field> y,
                   Stream stream) {
  const ResidueMatrix matrix{w, bits(w.dtype) / 8, map};
  if (x.count == 1) return launch_residue_rows<1>(matrix, x, y, stream);
  launch_residue_rows<4>(matrix, x, y, stream);
}
void multiply_rows(const StoredMatrix& w, RowView<const double> x, RowView<double> y,
                   Stream stream) {
  launch_real_rows(w, x, y, stream);
}
void multiply_rows(const StoredMatrix& w, RowView<const float> x, RowView<float> y, Stream stream) {
  launch_real_rows(w, x, y, stream);
}

void add_columns(const StoredMatrix& w, NumberMap map, RowView<const Field> x, RowView<Field> y,
                 Stream stream) {
  run(ResidueColumns{{w, bits(w.dtype) / 8, map}, x, y}, stream);
}
void add_columns(const StoredMatrix& w, RowView<const double> x, RowView<double> y, Stream stream) {
  run(RealColumns<double>{w, x, y}, stream);
}
void add_columns(const StoredMatrix& w, RowView<const float> x, RowView<float> y, Stream stream) {
  run(RealColumns<float>{w, x, y}, stream);
}

}  // namespace shardtool::kernels::gpu
