#pragma once

#include "kernels/product/weights.cuh"

namespace shardtool::kernels::SHARDTOOL_GPU {

/// An element of kBytes in a register.
template <int kBytes>
using Word = std::conditional_t<
    kBytes == 1, std::uint8_t,
    std::conditional_t<kBytes == 2, std::uint16_t,
                       std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>>;

/// y[t][c] += sum over r of x[t][r] w[r][c] of residues, whose sums have no order: the warps of a
/// block share the rows, each has kTokens sums per column, and their sums are added at the end.
template <class Sum, class Decoder, int kTokens>
class ResidueColumnsBlock {
 public:
  static constexpr int kWarps = 16;
  static constexpr int kThreads = kWarps * kWarp;
  using Weights = BlockWeights<Sum, Decoder>;

 private:
  using Input = typename Sum::Input;
  static constexpr int kBytes = Decoder::kBytes;
  static constexpr int kSteps = kBytes < 4 ? 16 : 8;  ///< rows of a tile per warp
  static constexpr int kTile = kSteps * kWarps;
  static constexpr int kFills = kTile * kTokens / kThreads;
  static_assert(kFills * kThreads == kTile * kTokens);

 public:
  struct Shared {
    union {
      Input x[2][kTile][kTokens];
      std::uint64_t parts[kWarps][kTokens][kWarp];
    };
    typename Weights::Weight table[Weights::kRoom];
  };

  __device__ ResidueColumnsBlock(const Decoder& decoder, const StoredMatrix& w,
                                 RowView<const Field> x, i64 first_column, i64 first_token,
                                 Shared& shared)
      : w_(w),
        x_(x),
        column_(first_column + lane()),
        first_token_(first_token),
        weights_(decoder, shared.table),
        shared_(shared) {}

  __device__ void add_to(RowView<Field> y) {
    const i64 tiles = ceil_div(w_.rows, kTile);
    if (tiles > 0) read_tile(0);
    for (i64 tile = 0; tile < tiles; ++tile) {
      const int buffer = static_cast<int>(tile % 2);
      for (int i = 0; i < kFills; ++i) {
        const int at = i * kThreads + thread();
        shared_.x[buffer][at % kTile][at / kTile] = Sum::of(next_x_[i]);
      }
      Word<kBytes> weights[kSteps];
      SHARDTOOL_UNROLL()
      for (int j = 0; j < kSteps; ++j) weights[j] = next_w_[j];
      __syncthreads();
      if (tile + 1 < tiles) read_tile(tile + 1);
      SHARDTOOL_UNROLL()
      for (int j = 0; j < kSteps; ++j) {
        // Rows past the end have inputs of 0.
        const auto weight = weights_.of(weights[j]);
        for (int t = 0; t < kTokens; ++t) {
          sums_.add(t, weight, shared_.x[buffer][row_of(j)][t]);
        }
      }
      if ((tile + 1) % (Sum::kMost / kSteps) == 0) sums_.fold();
    }
    __syncthreads();  // parts use the memory of x
    for (int t = 0; t < kTokens; ++t) shared_.parts[warp()][t][lane()] = sums_.value(t).v;
    __syncthreads();
    if (warp() >= kTokens || first_token_ + warp() >= x_.count || column_ >= w_.columns) return;
    Field sum;
    for (int i = 0; i < kWarps; ++i) sum += Field{shared_.parts[i][warp()][lane()]};
    y.row(first_token_ + warp())[column_] += sum;
  }

 private:
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int lane() { return thread() % kWarp; }
  __device__ static int warp() { return thread() / kWarp; }
  /// Row of a tile that this warp computes with in step j.
  __device__ static int row_of(int j) { return j * kWarps + warp(); }

  __device__ void read_tile(i64 tile) {
    for (int i = 0; i < kFills; ++i) {
      const int at = i * kThreads + thread();
      const i64 r = tile * kTile + at % kTile;
      const i64 t = first_token_ + at / kTile;
      next_x_[i] = t < x_.count && r < w_.rows ? x_.row(t)[r] : Field{};
    }
    SHARDTOOL_UNROLL()
    for (int j = 0; j < kSteps; ++j) {
      const i64 r = tile * kTile + row_of(j);
      next_w_[j] = r < w_.rows && column_ < w_.columns
                       ? element<Word<kBytes>>(w_.bytes, r * w_.stride + column_)
                       : Word<kBytes>{};
    }
  }

  const StoredMatrix& w_;
  RowView<const Field> x_;
  i64 column_;
  i64 first_token_;
  Weights weights_;
  Shared& shared_;
  Sums<Sum, kTokens> sums_;
  Field next_x_[kFills];
  Word<kBytes> next_w_[kSteps];
};

template <class Sum, class Decoder, int kTokens>
__global__ void __launch_bounds__(ResidueColumnsBlock<Sum, Decoder, kTokens>::kThreads)
    residue_columns(const Decoder decoder, const StoredMatrix w, RowView<const Field> x,
                    RowView<Field> y) {
  using Block = ResidueColumnsBlock<Sum, Decoder, kTokens>;
  __shared__ typename Block::Shared shared;
  Block(decoder, w, x, i64{blockIdx.x} * kWarp, i64{blockIdx.y} * kTokens, shared).add_to(y);
}

/// The same of floats, rows in ascending order: one thread has a column and two rows of x. The
/// block decodes each tile once.
template <class T, class Decoder>
class RealColumnsBlock {
 public:
  static constexpr int kWarps = 4;
  static constexpr int kOfThread = 2;  ///< rows of x per thread
  static constexpr int kTokens = kWarps * kOfThread;
  static constexpr int kThreads = kWarps * kWarp;
  using Weights = BlockWeights<RealSum<T>, Decoder>;

 private:
  static constexpr int kBytes = Decoder::kBytes;
  static constexpr int kSteps = 16;  ///< rows of a tile that a warp reads
  static constexpr int kTile = kSteps * kWarps;
  static constexpr int kFills = kTile * kTokens / kThreads;

 public:
  struct Shared {
    T w[2][kTile][kWarp];
    T x[2][kTokens][kTile];
    typename Weights::Weight table[Weights::kRoom];
  };

  __device__ RealColumnsBlock(const Decoder& decoder, const StoredMatrix& w, RowView<const T> x,
                              i64 first_column, i64 first_token, Shared& shared)
      : w_(w),
        x_(x),
        column_(first_column + lane()),
        first_token_(first_token),
        weights_(decoder, shared.table),
        shared_(shared) {}

  __device__ void add_to(RowView<T> y) {
    T sums[kOfThread];
    for (int i = 0; i < kOfThread; ++i) sums[i] = is_here(i) ? y.row(token(i))[column_] : T(0);
    const i64 tiles = ceil_div(w_.rows, kTile);
    if (tiles > 0) read_tile(0);
    __syncthreads();  // the table is full
    for (i64 tile = 0; tile < tiles; ++tile) {
      const int buffer = static_cast<int>(tile % 2);
      store_tile(buffer);
      __syncthreads();
      if (tile + 1 < tiles) read_tile(tile + 1);
      const i64 left = w_.rows - tile * kTile;
      const int rows = left < kTile ? static_cast<int>(left) : kTile;
      SHARDTOOL_UNROLL(8)
      for (int r = 0; r < rows; ++r) {
        const T weight = shared_.w[buffer][r][lane()];
        for (int i = 0; i < kOfThread; ++i) {
          sums[i] += shared_.x[buffer][warp() * kOfThread + i][r] * weight;
        }
      }
    }
    for (int i = 0; i < kOfThread; ++i) {
      if (is_here(i)) y.row(token(i))[column_] = sums[i];
    }
  }

 private:
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int lane() { return thread() % kWarp; }
  __device__ static int warp() { return thread() / kWarp; }
  __device__ i64 token(int i) const { return first_token_ + warp() * kOfThread + i; }
  __device__ bool is_here(int i) const { return token(i) < x_.count && column_ < w_.columns; }

  __device__ void read_tile(i64 tile) {
    for (int i = 0; i < kFills; ++i) {
      const int at = i * kThreads + thread();
      const i64 r = tile * kTile + at % kTile;
      const i64 t = first_token_ + at / kTile;
      next_x_[i] = t < x_.count && r < w_.rows ? x_.row(t)[r] : T(0);
    }
    SHARDTOOL_UNROLL()
    for (int j = 0; j < kSteps; ++j) {
      const i64 r = tile * kTile + j * kWarps + warp();
      next_w_[j] = r < w_.rows && column_ < w_.columns
                       ? element<Word<kBytes>>(w_.bytes, r * w_.stride + column_)
                       : Word<kBytes>{};
    }
  }
  __device__ void store_tile(int buffer) {
    for (int i = 0; i < kFills; ++i) {
      const int at = i * kThreads + thread();
      shared_.x[buffer][at / kTile][at % kTile] = next_x_[i];
    }
    SHARDTOOL_UNROLL()
    for (int j = 0; j < kSteps; ++j) {
      shared_.w[buffer][j * kWarps + warp()][lane()] = weights_.of(next_w_[j]);
    }
  }

  const StoredMatrix& w_;
  RowView<const T> x_;
  i64 column_;
  i64 first_token_;
  Weights weights_;
  Shared& shared_;
  T next_x_[kFills];
  Word<kBytes> next_w_[kSteps];
};

template <class T, class Decoder>
__global__ void __launch_bounds__(RealColumnsBlock<T, Decoder>::kThreads)
    real_columns(const Decoder decoder, const StoredMatrix w, RowView<const T> x, RowView<T> y) {
  using Block = RealColumnsBlock<T, Decoder>;
  __shared__ typename Block::Shared shared;
  Block(decoder, w, x, i64{blockIdx.x} * kWarp, i64{blockIdx.y} * Block::kTokens, shared).add_to(y);
}

}  // namespace shardtool::kernels::SHARDTOOL_GPU
