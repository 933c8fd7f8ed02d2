#pragma once

#include <span>

#include "kernels/product/product.h"

namespace shardtool::kernels {

/// One compilation of the same loops for an instruction set. All give the same bits.
struct ProductImplementation {
  const char* name;
  void (*rows_of_residues)(const StoredMatrix&, NumberMap, RowView<const Field>, RowView<Field>);
  void (*rows_of_doubles)(const StoredMatrix&, RowView<const double>, RowView<double>);
  void (*rows_of_floats)(const StoredMatrix&, RowView<const float>, RowView<float>);
  void (*columns_of_residues)(const StoredMatrix&, NumberMap, RowView<const Field>, RowView<Field>);
  void (*columns_of_doubles)(const StoredMatrix&, RowView<const double>, RowView<double>);
  void (*columns_of_floats)(const StoredMatrix&, RowView<const float>, RowView<float>);
};

/// Implementations that this CPU can run, fastest first. The portable one is always last.
std::span<const ProductImplementation> product_implementations();

extern const ProductImplementation kProductPortable;
#if defined(__x86_64__)
extern const ProductImplementation kProductAvx2;
extern const ProductImplementation kProductAvx512;
#endif

}  // namespace shardtool::kernels
