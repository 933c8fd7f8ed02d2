#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "kernels/compare/compare.h"
#include "kernels/decode/decode_works.h"
#include "kernels/encode/element.h"
#include "kernels/fill/fill.h"
#include "kernels/fold/fold.h"
#include "kernels/native/native_products.h"
#include "kernels/ops/works.h"
#include "kernels/product/product.h"
#include "lib/index/strided_copy.h"

/// All works that an accelerator runs, as values. Their pointers are device pointers.
namespace shardtool::kernels {

/// multiply_rows (product.h). `map` applies to residues only.
template <class T>
struct RowProducts {
  StoredMatrix w;
  NumberMap map = NumberMap::kBits;
  RowView<const T> x;
  RowView<T> y;
};

/// add_columns (product.h).
template <class T>
struct ColumnProducts {
  StoredMatrix w;
  NumberMap map = NumberMap::kBits;
  RowView<const T> x;
  RowView<T> y;
};

/// Joins the mismatches of the rows to *found.
template <class T>
struct Comparison {
  CompareRows<T> rows;
  Disagreement* found = nullptr;
};

/// strided_copy (strided_copy.h) with at most kMostCopyLoops loops.
struct BoxCopy {
  index::StridedCopy copy;
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
};

using AnyWork = std::variant<
    RowProducts<Field>, RowProducts<double>, RowProducts<float>, ColumnProducts<Field>,
    ColumnProducts<double>, ColumnProducts<float>, ScaleRows<Field>, ScaleRows<double>,
    ScaleRows<float>, Comparison<Field>, Comparison<double>, Comparison<float>, NativeProducts,
    SquareRows<double>, SquareRows<float>, RootMeanSquare, CombineAll<Field>, CombineAll<double>,
    CombineAll<float>, AddToRows<Field>, AddToRows<double>, AddToRows<float>, EncodeFloats, BoxCopy,
    DecodeResidues, DecodeNumbers<double>, DecodeNumbers<float>, Fill<std::uint8_t>,
    Fill<std::uint16_t>, Fill<std::uint32_t>, Fill<std::uint64_t>, FoldParts<Field>,
    FoldParts<double>, FoldParts<float>, NormRows<Field>, NormRows<double>, NormRows<float>,
    RotateHeads<Field>, RotateHeads<double>, RotateHeads<float>, AttendHeads<Field>,
    AttendHeads<double>, AttendHeads<float>, IndexRows<Field>, IndexRows<double>, IndexRows<float>,
    ConvolveRows<Field>, ConvolveRows<double>, ConvolveRows<float>, RecurHeads<Field>,
    RecurHeads<double>, RecurHeads<float>, ActivateAll<Field>, ActivateAll<double>,
    ActivateAll<float>, WeighRows<Field>, WeighRows<double>, WeighRows<float>, RouteToAll,
    RouteRows<double>, RouteRows<float>>;

}  // namespace shardtool::kernels
