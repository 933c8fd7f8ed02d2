#include "lib/base/dtype.h"

#include <algorithm>
#include <array>

namespace shardtool {
namespace {

using enum Dtype;
constexpr auto kDtypes = std::to_array<DtypeInfo>({
    {kBool, "BOOL", 8, DtypeKind::kBool},
    {kF4, "F4", 4, DtypeKind::kFloat},
    {kF6E2M3, "F6_E2M3", 6, DtypeKind::kFloat},
    {kF6E3M2, "F6_E3M2", 6, DtypeKind::kFloat},
    {kU8, "U8", 8, DtypeKind::kUnsigned},
    {kI8, "I8", 8, DtypeKind::kSigned},
    {kF8E5M2, "F8_E5M2", 8, DtypeKind::kFloat},
    {kF8E4M3, "F8_E4M3", 8, DtypeKind::kFloat},
    {kF8E8M0, "F8_E8M0", 8, DtypeKind::kFloat},
    {kF8E4M3Fnuz, "F8_E4M3FNUZ", 8, DtypeKind::kFloat},
    {kF8E5M2Fnuz, "F8_E5M2FNUZ", 8, DtypeKind::kFloat},
    {kI16, "I16", 16, DtypeKind::kSigned},
    {kU16, "U16", 16, DtypeKind::kUnsigned},
    {kF16, "F16", 16, DtypeKind::kFloat},
    {kBF16, "BF16", 16, DtypeKind::kFloat},
    {kI32, "I32", 32, DtypeKind::kSigned},
    {kU32, "U32", 32, DtypeKind::kUnsigned},
    {kF32, "F32", 32, DtypeKind::kFloat},
    {kC64, "C64", 64, DtypeKind::kComplex},
    {kF64, "F64", 64, DtypeKind::kFloat},
    {kI64, "I64", 64, DtypeKind::kSigned},
    {kU64, "U64", 64, DtypeKind::kUnsigned},
});

constexpr bool rows_follow_the_enum() {
  for (size_t i = 0; i < kDtypes.size(); ++i) {
    if (static_cast<size_t>(kDtypes[i].dtype) != i) return false;
  }
  return true;
}
static_assert(rows_follow_the_enum());

}  // namespace

std::span<const DtypeInfo> dtype_table() {
  return kDtypes;
}

const DtypeInfo& dtype_info(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)];
}

std::optional<Dtype> parse_dtype(std::string_view name) {
  const auto row = std::find_if(kDtypes.begin(), kDtypes.end(),
                                [name](const DtypeInfo& info) { return info.name == name; });
  if (row == kDtypes.end()) return std::nullopt;
  return row->dtype;
}

std::optional<i64> byte_size(Dtype dtype, const Shape& shape) {
  const auto count = element_count(shape);
  if (!count) return std::nullopt;
  const auto total_bits = checked_mul(*count, bits(dtype));
  if (!total_bits || *total_bits % 8 != 0) return std::nullopt;
  return *total_bits / 8;
}

}  // namespace shardtool
