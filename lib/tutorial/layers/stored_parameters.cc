#include "lib/tutorial/layers/stored_parameters.h"

#include "kernels/decode/decode.h"

namespace shardtool::tutorial {
namespace {

template <Number T>
std::vector<T> decoded_numbers(const StoredArray& array) {
  const i64 n = array.rows * array.columns;
  std::vector<T> numbers(static_cast<size_t>(n));
  if constexpr (std::same_as<T, Field>) {
    kernels::to_residues(array.dtype, kernels::NumberMap::kValue, array.bytes.data(), n,
                         numbers.data());
  } else if constexpr (std::same_as<T, double>) {
    kernels::to_doubles(array.dtype, array.bytes.data(), n, numbers.data());
  } else {
    kernels::to_floats(array.dtype, array.bytes.data(), n, numbers.data());
  }
  return numbers;
}

}  // namespace

template <Number T>
Parameters<T> numbers_of(const StoredParameters& stored) {
  Parameters<T> parameters;
  for (const auto& [name, array] : stored) {
    parameters[name] = Matrix<T>(array.rows, array.columns, decoded_numbers<T>(array));
  }
  return parameters;
}

template Parameters<Field> numbers_of(const StoredParameters&);
template Parameters<double> numbers_of(const StoredParameters&);
template Parameters<float> numbers_of(const StoredParameters&);

}  // namespace shardtool::tutorial
