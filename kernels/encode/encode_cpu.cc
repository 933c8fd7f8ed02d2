#include <cassert>
#include <cstdint>
#include <cstring>

#include "kernels/encode/element.h"
#include "kernels/encode/encode.h"

namespace shardtool::kernels {
namespace {

template <class Encode>
void encode_16_bits(const float* values, i64 n, std::byte* elements, const Encode& encode) {
  for (i64 i = 0; i < n; ++i) {
    const std::uint16_t element = encode(values[i]);
    std::memcpy(elements + 2 * i, &element, sizeof element);
  }
}

}  // namespace

bool is_float_storage(Dtype dtype) {
  return dtype == Dtype::kBF16 || dtype == Dtype::kF16 || dtype == Dtype::kF32;
}

void from_floats(Dtype dtype, const float* values, i64 n, std::byte* elements) {
  assert(is_float_storage(dtype));
  if (dtype == Dtype::kBF16) return encode_16_bits(values, n, elements, as_bf16);
  if (dtype == Dtype::kF16) return encode_16_bits(values, n, elements, as_f16);
  if (n > 0) std::memcpy(elements, values, static_cast<size_t>(n) * sizeof(float));
}

}  // namespace shardtool::kernels
