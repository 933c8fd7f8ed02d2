#pragma once

#include "kernels/product/weights.cuh"

namespace shardtool::kernels::SHARDTOOL_GPU {

/// The part of a tile of rows of w and x that a thread reads into registers. A block has 32
/// columns, one per lane; its warps share the rows of a tile, of which each has kSteps.
template <class Number, int kBytes, int kWarps, int kSteps, int kTokens>
class ColumnReader {
 public:
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kTile = kSteps * kWarps;
  static constexpr int kFills = kTile * kTokens / kThreads;
  static_assert(kFills * kThreads == kTile * kTokens);

  __device__ ColumnReader(const StoredMatrix& w, RowView<const Number> x, i64 first_column,
                          i64 first_token)
      : w_(w), x_(x), column_(first_column + lane()), first_token_(first_token) {}

  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int lane() { return thread() % kWarp; }
  __device__ static int warp() { return thread() / kWarp; }
  /// Row of a tile that this warp reads in step j.
  __device__ static int row_of(int j) { return j * kWarps + warp(); }

  __device__ i64 rows() const { return w_.rows; }
  __device__ i64 tiles() const { return ceil_div(w_.rows, kTile); }
  /// Numbers past an end are 0.
  __device__ void read(i64 tile) {
    for (int i = 0; i < kFills; ++i) {
      const int at = i * kThreads + thread();
      const i64 r = tile * kTile + at % kTile;
      const i64 t = first_token_ + at / kTile;
      next_x_[i] = t < x_.count && r < w_.rows ? x_.row(t)[r] : Number{};
    }
    SHARDTOOL_UNROLL()
    for (int j = 0; j < kSteps; ++j) {
      const i64 r = tile * kTile + row_of(j);
      next_w_[j] = r < w_.rows && column_ < w_.columns
                       ? element<Word<kBytes>>(w_.bytes, r * w_.stride + column_)
                       : Word<kBytes>{};
    }
  }
  /// Calls store(t, r, number) for every number of x that was read.
  template <class Store>
  __device__ void for_x(const Store& store) const {
    for (int i = 0; i < kFills; ++i) {
      const int at = i * kThreads + thread();
      store(at / kTile, at % kTile, next_x_[i]);
    }
  }

  /// The element of w that was read in step j.
  __device__ Word<kBytes> weight(int j) const { return next_w_[j]; }

  __device__ i64 column() const { return column_; }
  __device__ i64 token(int t) const { return first_token_ + t; }
  __device__ bool has(int t) const { return token(t) < x_.count && column_ < w_.columns; }

 private:
  const StoredMatrix& w_;
  RowView<const Number> x_;
  i64 column_;
  i64 first_token_;
  Number next_x_[kFills];
  Word<kBytes> next_w_[kSteps];
};

/// y[t][c] += sum over r of x[t][r] w[r][c] of residues, whose sums have no order: the warps of a
/// block share the rows, each has kTokens sums per column, and their sums are added at the end.
template <class Sum, class Decoder, int kTokens>
class ResidueColumnsBlock {
  static constexpr int kWarps = 16;
  static constexpr int kBytes = Decoder::kBytes;
  static constexpr int kSteps = kBytes < 4 ? 16 : 8;
  using Reader = ColumnReader<Field, kBytes, kWarps, kSteps, kTokens>;
  using Weights = BlockWeights<Sum, Decoder>;

 public:
  static constexpr int kThreads = Reader::kThreads;
  struct Shared {
    union {
      typename Sum::Input x[2][Reader::kTile][kTokens];
      std::uint64_t parts[kWarps][kTokens][kWarp];
    };
    typename Weights::Weight table[Weights::kRoom];
  };

  __device__ ResidueColumnsBlock(const Decoder& decoder, const Reader& reader, Shared& shared)
      : reader_(reader), weights_(decoder, shared.table), shared_(shared) {}

  __device__ void add_to(RowView<Field> y) {
    const i64 tiles = reader_.tiles();
    if (tiles > 0) reader_.read(0);
    for (i64 tile = 0; tile < tiles; ++tile) {
      auto& inputs = shared_.x[tile % 2];
      reader_.for_x([&](int t, int r, Field number) { inputs[r][t] = Sum::of(number); });
      Word<kBytes> weights[kSteps];
      SHARDTOOL_UNROLL()
      for (int j = 0; j < kSteps; ++j) weights[j] = reader_.weight(j);
      __syncthreads();
      if (tile + 1 < tiles) reader_.read(tile + 1);
      SHARDTOOL_UNROLL()
      for (int j = 0; j < kSteps; ++j) {
        // Rows past the end have inputs of 0.
        const auto weight = weights_.of(weights[j]);
        for (int t = 0; t < kTokens; ++t) sums_.add(t, weight, inputs[Reader::row_of(j)][t]);
      }
      if ((tile + 1) % (Sum::kMost / kSteps) == 0) sums_.fold();
    }
    const int warp = Reader::warp(), lane = Reader::lane();
    __syncthreads();  // parts use the memory of x
    for (int t = 0; t < kTokens; ++t) shared_.parts[warp][t][lane] = sums_.value(t).v;
    __syncthreads();
    if (warp >= kTokens || !reader_.has(warp)) return;
    Field sum;
    for (int i = 0; i < kWarps; ++i) sum += Field{shared_.parts[i][warp][lane]};
    y.row(reader_.token(warp))[reader_.column()] += sum;
  }

 private:
  Reader reader_;
  Weights weights_;
  Shared& shared_;
  Sums<Sum, kTokens> sums_;
};

template <class Sum, class Decoder, int kTokens>
__global__ void __launch_bounds__(ResidueColumnsBlock<Sum, Decoder, kTokens>::kThreads)
    residue_columns(const Decoder decoder, const StoredMatrix w, RowView<const Field> x,
                    RowView<Field> y) {
  using Block = ResidueColumnsBlock<Sum, Decoder, kTokens>;
  __shared__ typename Block::Shared shared;
  Block(decoder, {w, x, i64{blockIdx.x} * kWarp, i64{blockIdx.y} * kTokens}, shared).add_to(y);
}

/// The same of floats, rows in ascending order: one thread has a column and two rows of x. The
/// block decodes each tile once.
template <class T, class Decoder>
class RealColumnsBlock {
  static constexpr int kWarps = 4;
  static constexpr int kSteps = 16;
  static constexpr int kOfThread = 2;  ///< rows of x per thread
  using Weights = BlockWeights<RealSum<T>, Decoder>;

 public:
  static constexpr int kTokens = kWarps * kOfThread;

 private:
  using Reader = ColumnReader<T, Decoder::kBytes, kWarps, kSteps, kTokens>;
  static constexpr int kTile = Reader::kTile;

 public:
  static constexpr int kThreads = Reader::kThreads;
  struct Shared {
    T w[2][kTile][kWarp];
    T x[2][kTokens][kTile];
    typename Weights::Weight table[Weights::kRoom];
  };

  __device__ RealColumnsBlock(const Decoder& decoder, const Reader& reader, Shared& shared)
      : reader_(reader), weights_(decoder, shared.table), shared_(shared) {}

  __device__ void add_to(RowView<T> y) {
    const int first = Reader::warp() * kOfThread;
    T sums[kOfThread];
    for (int i = 0; i < kOfThread; ++i) {
      sums[i] = reader_.has(first + i) ? y.row(reader_.token(first + i))[reader_.column()] : T(0);
    }
    const i64 tiles = reader_.tiles();
    if (tiles > 0) reader_.read(0);
    __syncthreads();  // the table is full
    for (i64 tile = 0; tile < tiles; ++tile) {
      auto& weights = shared_.w[tile % 2];
      auto& inputs = shared_.x[tile % 2];
      reader_.for_x([&](int t, int r, T number) { inputs[t][r] = number; });
      SHARDTOOL_UNROLL()
      for (int j = 0; j < kSteps; ++j) {
        weights[Reader::row_of(j)][Reader::lane()] = weights_.of(reader_.weight(j));
      }
      __syncthreads();
      if (tile + 1 < tiles) reader_.read(tile + 1);
      const i64 left = reader_.rows() - tile * kTile;
      const int rows = left < kTile ? static_cast<int>(left) : kTile;
      SHARDTOOL_UNROLL(8)
      for (int r = 0; r < rows; ++r) {
        const T weight = weights[r][Reader::lane()];
        for (int i = 0; i < kOfThread; ++i) sums[i] += inputs[first + i][r] * weight;
      }
    }
    for (int i = 0; i < kOfThread; ++i) {
      if (reader_.has(first + i)) y.row(reader_.token(first + i))[reader_.column()] = sums[i];
    }
  }

 private:
  Reader reader_;
  Weights weights_;
  Shared& shared_;
};

template <class T, class Decoder>
__global__ void __launch_bounds__(RealColumnsBlock<T, Decoder>::kThreads)
    real_columns(const Decoder decoder, const StoredMatrix w, RowView<const T> x, RowView<T> y) {
  using Block = RealColumnsBlock<T, Decoder>;
  __shared__ typename Block::Shared shared;
  Block(decoder, {w, x, i64{blockIdx.x} * kWarp, i64{blockIdx.y} * Block::kTokens}, shared)
      .add_to(y);
}

}  // namespace shardtool::kernels::SHARDTOOL_GPU
