#include "lib/engine/weights/packed_part.h"

#include <type_traits>

#include "kernels/decode/decode.h"

namespace shardtool::engine {

template <class T>
std::vector<T> read_numbers(const PackedPart& part, const StoredRows& rows, i64 columns,
                            std::optional<Dtype> instead) {
  const Dtype dtype = instead.value_or(part.tensors[rows.tensor].dtype);
  const i64 count = (rows.end - rows.begin) * columns;
  std::vector<std::byte> bytes(static_cast<size_t>(count * bits(dtype) / 8));
  if (!bytes.empty()) part.stored.read(rows, bytes);
  std::vector<T> numbers(static_cast<size_t>(count));
  if constexpr (std::is_same_v<T, float>) {
    kernels::to_floats(dtype, bytes.data(), count, numbers.data());
  } else {
    kernels::to_doubles(dtype, bytes.data(), count, numbers.data());
  }
  return numbers;
}

template std::vector<float> read_numbers(const PackedPart&, const StoredRows&, i64,
                                         std::optional<Dtype>);
template std::vector<double> read_numbers(const PackedPart&, const StoredRows&, i64,
                                          std::optional<Dtype>);

}  // namespace shardtool::engine
