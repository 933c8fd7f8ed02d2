#include "lib/format/torch/torch_dtype.h"

#include <algorithm>
#include <array>

namespace shardtool::format::torch {
namespace {

using enum Dtype;

/// One row per dtype that torch and safetensors share. Younger dtypes have no storage class.
constexpr auto kDtypes = std::to_array<TorchNames>({
    {kBool, "bool", "BoolStorage"},
    {kU8, "uint8", "ByteStorage"},
    {kI8, "int8", "CharStorage"},
    {kI16, "int16", "ShortStorage"},
    {kI32, "int32", "IntStorage"},
    {kI64, "int64", "LongStorage"},
    {kF16, "float16", "HalfStorage"},
    {kBF16, "bfloat16", "BFloat16Storage"},
    {kF32, "float32", "FloatStorage"},
    {kF64, "float64", "DoubleStorage"},
    {kC64, "complex64", "ComplexFloatStorage"},
    {kU16, "uint16", ""},
    {kU32, "uint32", ""},
    {kU64, "uint64", ""},
    {kF8E5M2, "float8_e5m2", ""},
    {kF8E4M3, "float8_e4m3fn", ""},
    {kF8E8M0, "float8_e8m0fnu", ""},
    {kF8E4M3Fnuz, "float8_e4m3fnuz", ""},
    {kF8E5M2Fnuz, "float8_e5m2fnuz", ""},
});

bool is_of_torch(PickleValue value) {
  return value.is(ValueKind::kGlobal) && value.module() == "torch";
}

}  // namespace

const TorchNames* torch_names(Dtype dtype) {
  const auto found = std::ranges::find(kDtypes, dtype, &TorchNames::dtype);
  return found == kDtypes.end() ? nullptr : &*found;
}

std::optional<Dtype> dtype_of(PickleValue global) {
  if (!is_of_torch(global)) return std::nullopt;
  for (const TorchNames& row : kDtypes) {
    if (row.name == global.name()) return row.dtype;
  }
  return std::nullopt;
}

std::optional<Dtype> storage_dtype_of(PickleValue global) {
  if (!is_of_torch(global)) return std::nullopt;
  for (const TorchNames& row : kDtypes) {
    if (!row.storage.empty() && row.storage == global.name()) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace shardtool::format::torch
