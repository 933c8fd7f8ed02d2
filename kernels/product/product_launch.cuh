#pragma once

#include "kernels/product/column_products.cuh"
#include "kernels/product/row_products.cuh"

/// Chooses the kernel for a product.
namespace shardtool::kernels::SHARDTOOL_GPU {

template <class Sum, int kTokens>
struct Rows {
  using Number = typename Sum::Number;
  StoredMatrix w;
  RowView<const Number> x;
  RowView<Number> y;
  Stream stream;

  template <class Decoder>
  void operator()(const Decoder& decoder) const {
    const dim3 grid(blocks_of(w.rows, RowProductsBlock<Sum, Decoder, kTokens>::kRows),
                    blocks_of(x.count, kTokens));
    launch("row_products", row_products<Sum, Decoder, kTokens>, grid, kThreads, stream, decoder, w,
           x, y);
  }
};

template <class Sum, int kTokens>
struct Columns {
  using Number = typename Sum::Number;
  StoredMatrix w;
  RowView<const Number> x;
  RowView<Number> y;
  Stream stream;

  template <class Decoder>
  void operator()(const Decoder& decoder) const {
    const dim3 grid(blocks_of(w.columns, kWarp), blocks_of(x.count, kTokens));
    if constexpr (std::is_same_v<Number, Field>) {
      using Block = ResidueColumnsBlock<Sum, Decoder, kTokens>;
      launch("residue_columns", residue_columns<Sum, Decoder, kTokens>, grid, Block::kThreads,
             stream, decoder, w, x, y);
    } else {
      using Block = RealColumnsBlock<Number, Decoder>;
      static_assert(kTokens == Block::kTokens);
      launch("real_columns", real_columns<Number, Decoder>, grid, Block::kThreads, stream, decoder,
             w, x, y);
    }
  }
};

/// Calls launch_with(decoder) with the decoder for w's elements.
template <class T, class Launch>
void with_number_weights(const StoredMatrix& w, const Launch& launch_with) {
  if (w.dtype == Dtype::kBF16) return launch_with(Bf16Weights<T>{});
  switch (bits(w.dtype) / 8) {
    case 1:
      return launch_with(NumberWeights<T, 1>{w.dtype});
    case 2:
      return launch_with(NumberWeights<T, 2>{w.dtype});
    case 4:
      return launch_with(NumberWeights<T, 4>{w.dtype});
    default:
      return launch_with(NumberWeights<T, 8>{w.dtype});
  }
}

/// Launch<Sum, kTokens> is Rows or Columns. Weights of up to 16 bits whose bits are their residues
/// need no multiplication of 64 bits.
template <template <class, int> class Launch, int kTokens>
void residue_products(const StoredMatrix& w, NumberMap map, RowView<const Field> x,
                      RowView<Field> y, Stream stream) {
  const Launch<NarrowSum, kTokens> narrow{w, x, y, stream};
  const Launch<WideSum, kTokens> wide{w, x, y, stream};
  const i64 width = bits(w.dtype) / 8;
  if (map == NumberMap::kBits && width == 1) return narrow(BitWeights<1>{});
  if (map == NumberMap::kBits && width == 2) return narrow(BitWeights<2>{});
  switch (width) {
    case 1:
      return wide(ResidueWeights<1>{w.dtype, map});
    case 2:
      return wide(ResidueWeights<2>{w.dtype, map});
    case 4:
      return wide(ResidueWeights<4>{w.dtype, map});
    default:
      return wide(ResidueWeights<8>{w.dtype, map});
  }
}

/// Rows of x per thread. `validate` has 3 in the field, and 8.
inline constexpr int kTokensOfResidues = 4;
inline constexpr int kTokensOfReals = 8;

template <class T>
void multiply_rows_in_blocks(const StoredMatrix& w, NumberMap map, RowView<const T> x, RowView<T> y,
                             Stream stream) {
  if (w.rows == 0 || x.count == 0) return;
  if constexpr (std::is_same_v<T, Field>) {
    residue_products<Rows, kTokensOfResidues>(w, map, x, y, stream);
  } else {
    with_number_weights<T>(w, Rows<RealSum<T>, kTokensOfReals>{w, x, y, stream});
  }
}

template <class T>
void add_columns_in_blocks(const StoredMatrix& w, NumberMap map, RowView<const T> x, RowView<T> y,
                           Stream stream) {
  if (w.rows == 0 || w.columns == 0 || x.count == 0) return;
  if constexpr (std::is_same_v<T, Field>) {
    residue_products<Columns, kTokensOfResidues>(w, map, x, y, stream);
  } else {
    with_number_weights<T>(w, Columns<RealSum<T>, kTokensOfReals>{w, x, y, stream});
  }
}

}  // namespace shardtool::kernels::SHARDTOOL_GPU
