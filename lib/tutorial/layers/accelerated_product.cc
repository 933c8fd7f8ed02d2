#include "lib/tutorial/layers/accelerated_product.h"

#include <memory>

#include "kernels/device/workbench.h"

namespace shardtool::tutorial {
namespace {

/// The stored type whose elements are the numbers themselves. The bits of a residue are its value.
template <Number T>
constexpr Dtype stored_as() {
  if constexpr (std::same_as<T, Field>) return Dtype::kU64;
  return std::same_as<T, double> ? Dtype::kF64 : Dtype::kF32;
}

template <Number T>
Matrix<T> multiplied(kernels::Workbench& bench, const Matrix<T>& a, const Matrix<T>& b) {
  require_extent("rows of the right factor", b.rows(), a.columns());
  Matrix<T> product(a.rows(), b.columns());
  const auto* const stored = reinterpret_cast<const std::byte*>(bench.in(b.values()));
  bench.accelerator()->run(
      kernels::ColumnProducts<T>{{stored_as<T>(), stored, b.rows(), b.columns()},
                                 kernels::NumberMap::kBits,
                                 {bench.in(a.values()), a.rows(), a.columns()},
                                 {bench.in_out(product.values()), a.rows(), b.columns()}});
  bench.finish();
  return product;
}

}  // namespace

template <Number T>
Product<T> product_on(kernels::Accelerator& accelerator) {
  // Shared by the copies of the function.
  const auto bench = std::make_shared<kernels::Workbench>(&accelerator);
  return [bench](const Matrix<T>& a, const Matrix<T>& b) { return multiplied(*bench, a, b); };
}

template Product<Field> product_on(kernels::Accelerator&);
template Product<double> product_on(kernels::Accelerator&);
template Product<float> product_on(kernels::Accelerator&);

}  // namespace shardtool::tutorial
