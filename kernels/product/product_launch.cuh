#pragma once

#include "kernels/product/column_products.cuh"
#include "kernels/product/row_products.cuh"

/// Chooses the kernel for a product.
namespace shardtool::kernels::SHARDTOOL_GPU {

template <class T>
struct Operands {
  StoredMatrix w;
  RowView<const T> x;
  RowView<T> y;
  Stream stream;
};

/// Rows of x per thread. `validate` has 3 in the field, and 8.
template <class T>
inline constexpr int kTokens = std::is_same_v<T, Field> ? 4 : 8;

struct Rows {
  static i64 outputs(const StoredMatrix& w) { return w.rows; }

  template <class Sum, class T, class Decoder>
  static void run(const Operands<T>& on, const Decoder& decoder) {
    const dim3 grid(blocks_of(on.w.rows, RowProductsBlock<Sum, Decoder, kTokens<T>>::kRows),
                    blocks_of(on.x.count, kTokens<T>));
    launch("the launch of row_products", row_products<Sum, Decoder, kTokens<T>>, grid, kThreads,
           on.stream, decoder, on.w, on.x, on.y);
  }
};

struct Columns {
  static i64 outputs(const StoredMatrix& w) { return w.columns; }

  template <class Sum, class T, class Decoder>
  static void run(const Operands<T>& on, const Decoder& decoder) {
    const dim3 grid(blocks_of(on.w.columns, kWarp), blocks_of(on.x.count, kTokens<T>));
    if constexpr (std::is_same_v<T, Field>) {
      using Block = ResidueColumnsBlock<Sum, Decoder, kTokens<T>>;
      launch("the launch of residue_columns", residue_columns<Sum, Decoder, kTokens<T>>, grid,
             Block::kThreads, on.stream, decoder, on.w, on.x, on.y);
    } else {
      using Block = RealColumnsBlock<T, Decoder>;
      static_assert(kTokens<T> == Block::kTokens);
      launch("the launch of real_columns", real_columns<T, Decoder>, grid, Block::kThreads,
             on.stream, decoder, on.w, on.x, on.y);
    }
  }
};

/// Launches the kernels of Rows or Columns with the decoder for w's elements.
template <class Launch, class T>
void multiply_numbers(const Operands<T>& on) {
  using Sum = RealSum<T>;
  const Dtype dtype = on.w.dtype;
  if (dtype == Dtype::kBF16) return Launch::template run<Sum>(on, Bf16Weights<T>{});
  switch (bits(dtype) / 8) {
    case 1:
      return Launch::template run<Sum>(on, NumberWeights<T, 1>{dtype});
    case 2:
      return Launch::template run<Sum>(on, NumberWeights<T, 2>{dtype});
    case 4:
      return Launch::template run<Sum>(on, NumberWeights<T, 4>{dtype});
    default:
      return Launch::template run<Sum>(on, NumberWeights<T, 8>{dtype});
  }
}

/// The same of residues. Weights of up to 16 bits whose bits are their residues need no
/// multiplication of 64 bits.
template <class Launch>
void multiply_residues(const Operands<Field>& on, NumberMap map) {
  const Dtype dtype = on.w.dtype;
  const i64 width = bits(dtype) / 8;
  if (map == NumberMap::kBits) {
    if (width == 1) return Launch::template run<NarrowSum>(on, BitWeights<1>{});
    if (width == 2) return Launch::template run<NarrowSum>(on, BitWeights<2>{});
  }
  switch (width) {
    case 1:
      return Launch::template run<WideSum>(on, ResidueWeights<1>{dtype, map});
    case 2:
      return Launch::template run<WideSum>(on, ResidueWeights<2>{dtype, map});
    case 4:
      return Launch::template run<WideSum>(on, ResidueWeights<4>{dtype, map});
    default:
      return Launch::template run<WideSum>(on, ResidueWeights<8>{dtype, map});
  }
}

/// Launch is Rows (multiply_rows) or Columns (add_columns); `map` applies to residues only.
template <class Launch, class T>
void multiply_in_blocks(const Operands<T>& on, NumberMap map = NumberMap::kBits) {
  if (on.x.count == 0 || Launch::outputs(on.w) == 0) return;
  if constexpr (std::is_same_v<T, Field>) {
    multiply_residues<Launch>(on, map);
  } else {
    multiply_numbers<Launch>(on);
  }
}

}  // namespace shardtool::kernels::SHARDTOOL_GPU
