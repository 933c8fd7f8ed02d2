#pragma once

#include "kernels/product/weights.cuh"

namespace shardtool::kernels::SHARDTOOL_GPU {

/// y[t][r] = sum over k of w[r][k] x[t][k]. Eight threads have a row of w and kTokens rows of x.
/// Thread l adds the columns k with k mod 8 = l in ascending order, and the threads' sums are added
/// as a tree: the order of real_loops.inc. A block passes through the columns in tiles of x, which
/// it shares, and of w, which a warp shares; the next tile is read while one is computed with.
template <class Sum, class Decoder, int kTokens>
class RowProductsBlock {
  using Number = typename Sum::Number;
  using Input = typename Sum::Input;

  static constexpr int kLanes = 8;
  static constexpr int kBytes = Decoder::kBytes;
  static constexpr int kSteps = kBytes == 8 ? 8 : 16;  ///< columns of a tile per thread
  static constexpr int kTile = kSteps * kLanes;
  static constexpr int kWarpRows = kWarp / kLanes;
  static constexpr int kVectors = kTile * kBytes / kVectorBytes / kLanes;  ///< per thread and tile
  static constexpr int kPerVector = kVectorBytes / static_cast<int>(sizeof(Input));
  static constexpr int kChunks = (kTokens + kPerVector - 1) / kPerVector;
  static constexpr int kFills = (kTile * kTokens + kThreads - 1) / kThreads;

 public:
  static constexpr int kRows = kThreads / kLanes;
  using Weights = BlockWeights<Sum, Decoder>;

  struct Shared {
    /// Inputs of column 8 j + l: x[j][.][l]. So eight threads read 128 bytes in a row.
    uint4 x[2][kSteps][kChunks][kLanes];
    /// A row of a tile, and a vector that keeps rows in different banks.
    uint4 w[kThreads / kWarp][kWarpRows][kTile * kBytes / kVectorBytes + 1];
    typename Weights::Weight table[Weights::kRoom];
  };

  __device__ RowProductsBlock(const Decoder& decoder, const StoredMatrix& w,
                              RowView<const Number> x, i64 first_row, i64 first_token,
                              Shared& shared)
      : w_(w), x_(x), first_token_(first_token), weights_(decoder, shared.table), shared_(shared) {
    row_ = first_row + thread() / kLanes;
    const i64 read = row_ < w.rows ? row_ : w.rows - 1;
    bytes_ = w.bytes + read * w.stride * kBytes;
    has_vectors_ = reinterpret_cast<std::uintptr_t>(w.bytes) % kVectorBytes == 0 &&
                   w.stride * kBytes % kVectorBytes == 0;
  }

  __device__ void multiply(RowView<Number> y) {
    const i64 tiles = ceil_div(w_.columns, kTile);
    if (tiles > 0) read_tile(0);
    for (i64 tile = 0; tile < tiles; ++tile) {
      store_tile(static_cast<int>(tile % 2));
      __syncthreads();
      const i64 left = w_.columns - tile * kTile;
      if (tile + 1 < tiles) read_tile(tile + 1);
      if (left >= kTile) {
        SHARDTOOL_UNROLL()
        for (int j = 0; j < kSteps; ++j) add_step(static_cast<int>(tile % 2), j);
      } else {
        const int steps = (static_cast<int>(left) - lane() + kLanes - 1) / kLanes;
        for (int j = 0; j < steps; ++j) add_step(static_cast<int>(tile % 2), j);
      }
      if constexpr (Sum::kMost > 0) {
        if ((tile + 1) % (Sum::kMost / kSteps) == 0) sums_.fold();
      }
    }
    write(y);
  }

 private:
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int lane() { return thread() % kLanes; }
  __device__ auto* row_of_tile() { return shared_.w[thread() / kWarp][thread() % kWarp / kLanes]; }

  /// Reads this thread's part of a tile into registers.
  __device__ void read_tile(i64 tile) {
    const i64 begin = tile * kTile;
    for (int i = 0; i < kFills; ++i) {
      const int at = i * kThreads + thread();
      const i64 k = begin + at % kTile;
      const i64 t = first_token_ + at / kTile;
      next_x_[i] = t < x_.count && k < w_.columns ? x_.row(t)[k] : Number{};
    }
    for (int i = 0; i < kVectors; ++i) {
      const i64 at = begin * kBytes + (i * kLanes + lane()) * kVectorBytes;
      next_w_[i] = vector_at(bytes_ + at, w_.columns * kBytes - at);
    }
  }
  /// 16 bytes of a row, of which `left` are in it; the others are 0.
  __device__ uint4 vector_at(const std::byte* from, i64 left) const {
    if (has_vectors_ && left >= kVectorBytes) return __ldg(reinterpret_cast<const uint4*>(from));
    uint4 vector{};
    auto* const words = reinterpret_cast<Word<kBytes>*>(&vector);
    for (int i = 0; i < kVectorBytes / kBytes; ++i) {
      if (i * kBytes < left) words[i] = element<Word<kBytes>>(from, i);
    }
    return vector;
  }

  __device__ void store_tile(int buffer) {
    for (int i = 0; i < kFills; ++i) {
      const int at = i * kThreads + thread();
      const int k = at % kTile;
      const int t = at / kTile;
      if (t >= kTokens) continue;
      auto* const chunk = &shared_.x[buffer][k / kLanes][t / kPerVector][k % kLanes];
      reinterpret_cast<Input*>(chunk)[t % kPerVector] = Sum::of(next_x_[i]);
    }
    __syncwarp();  // all lanes have computed with the last tile
    for (int i = 0; i < kVectors; ++i) row_of_tile()[i * kLanes + lane()] = next_w_[i];
  }

  __device__ void add_step(int buffer, int j) {
    const auto* const row = reinterpret_cast<const std::byte*>(row_of_tile());
    const auto weight = weights_.at(row + (j * kLanes + lane()) * kBytes);
    SHARDTOOL_UNROLL()
    for (int c = 0; c < kChunks; ++c) {
      const uint4 vector = shared_.x[buffer][j][c][lane()];
      Input inputs[kPerVector];
      std::memcpy(inputs, &vector, sizeof vector);
      SHARDTOOL_UNROLL()
      for (int i = 0; i < kPerVector; ++i) {
        const int t = c * kPerVector + i;
        if (t < kTokens) sums_.add(t, weight, inputs[i]);
      }
    }
  }

  __device__ void write(RowView<Number> y) {
    SHARDTOOL_UNROLL()
    for (int t = 0; t < kTokens; ++t) {
      Number sum = sums_.value(t);
      for (int distance = kLanes / 2; distance > 0; distance /= 2) {
        sum = sum + of_other_lane(sum, distance);
      }
      const bool is_here = row_ < w_.rows && first_token_ + t < x_.count;
      if (lane() == t % kLanes && is_here) y.row(first_token_ + t)[row_] = sum;
    }
  }

  const StoredMatrix& w_;
  RowView<const Number> x_;
  i64 first_token_;
  Weights weights_;
  Shared& shared_;
  i64 row_;
  const std::byte* bytes_;  ///< of the thread's row
  bool has_vectors_;        ///< true if rows of w are aligned to 16 bytes
  Sums<Sum, kTokens> sums_;
  Number next_x_[kFills];
  uint4 next_w_[kVectors];
};

template <class Sum, class Decoder, int kTokens>
__global__ void __launch_bounds__(kThreads)
    row_products(const Decoder decoder, const StoredMatrix w, RowView<const typename Sum::Number> x,
                 RowView<typename Sum::Number> y) {
  using Block = RowProductsBlock<Sum, Decoder, kTokens>;
  __shared__ typename Block::Shared shared;
  Block(decoder, w, x, i64{blockIdx.x} * Block::kRows, i64{blockIdx.y} * kTokens, shared)
      .multiply(y);
}

}  // namespace shardtool::kernels::SHARDTOOL_GPU
