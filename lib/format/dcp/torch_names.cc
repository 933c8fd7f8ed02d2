#include "lib/format/dcp/torch_names.h"

#include <algorithm>
#include <array>

namespace shardtool::format::dcp {
namespace {

constexpr auto kNames = std::to_array<TorchNames>({
    {Dtype::kBool, "bool", "BoolStorage"},
    {Dtype::kU8, "uint8", "ByteStorage"},
    {Dtype::kI8, "int8", "CharStorage"},
    {Dtype::kI16, "int16", "ShortStorage"},
    {Dtype::kI32, "int32", "IntStorage"},
    {Dtype::kI64, "int64", "LongStorage"},
    {Dtype::kU16, "uint16", ""},
    {Dtype::kU32, "uint32", ""},
    {Dtype::kU64, "uint64", ""},
    {Dtype::kF16, "float16", "HalfStorage"},
    {Dtype::kBF16, "bfloat16", "BFloat16Storage"},
    {Dtype::kF32, "float32", "FloatStorage"},
    {Dtype::kF64, "float64", "DoubleStorage"},
    {Dtype::kC64, "complex64", "ComplexFloatStorage"},
    {Dtype::kF8E4M3, "float8_e4m3fn", ""},
    {Dtype::kF8E5M2, "float8_e5m2", ""},
    {Dtype::kF8E8M0, "float8_e8m0fnu", ""},
    {Dtype::kF8E4M3Fnuz, "float8_e4m3fnuz", ""},
    {Dtype::kF8E5M2Fnuz, "float8_e5m2fnuz", ""},
});

}  // namespace

const TorchNames* torch_names(Dtype dtype) {
  const auto found =
      std::find_if(kNames.begin(), kNames.end(), [&](auto& row) { return row.dtype == dtype; });
  return found == kNames.end() ? nullptr : &*found;
}

std::optional<Dtype> dtype_of_torch(std::string_view name) {
  const auto found =
      std::find_if(kNames.begin(), kNames.end(), [&](auto& row) { return row.name == name; });
  if (found == kNames.end()) return std::nullopt;
  return found->dtype;
}

}  // namespace shardtool::format::dcp
