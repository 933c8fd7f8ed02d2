#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "lib/base/checked.h"
#include "lib/base/shape.h"

namespace shardtool {

/// Element types of the safetensors format (safetensors/src/tensor.rs, 0.8).
enum class Dtype {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};

enum class DtypeKind { kBool, kUnsigned, kSigned, kFloat, kComplex };

/// One row of the only dtype table. All other code moves bits.
struct DtypeInfo {
  Dtype dtype;
  std::string_view name;  ///< as in a safetensors header, e.g. "BF16"
  int bits;               ///< bits per element
  DtypeKind kind;
};

std::span<const DtypeInfo> dtype_table();
const DtypeInfo& dtype_info(Dtype dtype);
inline int bits(Dtype dtype) {
  return dtype_info(dtype).bits;
}
inline std::string_view to_string(Dtype dtype) {
  return dtype_info(dtype).name;
}
/// Returns the dtype with exactly this name, or nullopt.
std::optional<Dtype> parse_dtype(std::string_view name);

/// Bytes of a tensor. Nullopt on overflow, or when its bits are not a whole number of bytes.
std::optional<i64> byte_size(Dtype dtype, const Shape& shape);

}  // namespace shardtool
