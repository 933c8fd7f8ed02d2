#include <vector>

#include "kernels/product/implementation.h"
#include "kernels/product/product.h"

namespace shardtool::kernels {
namespace {

std::vector<ProductImplementation> supported_products() {
  std::vector<ProductImplementation> list;
#if defined(__x86_64__)
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512ifma");
  if (wide) list.push_back(kProductAvx512);
  if (__builtin_cpu_supports("avx2")) list.push_back(kProductAvx2);
#endif
  list.push_back(kProductPortable);
  return list;
}

const ProductImplementation& fastest_product() {
  static const ProductImplementation implementation = product_implementations().front();
  return implementation;
}

}  // namespace

std::span<const ProductImplementation> product_implementations() {
  static const std::vector<ProductImplementation> list = supported_products();
  return list;
}

void multiply_rows(const StoredMatrix& w, NumberMap map, RowView<const Field> x, RowView<Field> y) {
  fastest_product().rows_of_residues(w, map, x, y);
}
void multiply_rows(const StoredMatrix& w, RowView<const double> x, RowView<double> y) {
  fastest_product().rows_of_doubles(w, x, y);
}
void multiply_rows(const StoredMatrix& w, RowView<const float> x, RowView<float> y) {
  fastest_product().rows_of_floats(w, x, y);
}
void add_columns(const StoredMatrix& w, NumberMap map, RowView<const Field> x, RowView<Field> y) {
  fastest_product().columns_of_residues(w, map, x, y);
}
void add_columns(const StoredMatrix& w, RowView<const double> x, RowView<double> y) {
  fastest_product().columns_of_doubles(w, x, y);
}
void add_columns(const StoredMatrix& w, RowView<const float> x, RowView<float> y) {
  fastest_product().columns_of_floats(w, x, y);
}

}  // namespace shardtool::kernels
