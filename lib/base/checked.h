#pragma once

#include <cstdint>
#include <optional>

namespace shardtool {

using i64 = std::int64_t;

/// a + b and a * b; nullopt on overflow. For sizes that come from files.
constexpr std::optional<i64> checked_add(i64 a, i64 b) {
  i64 r = 0;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}
constexpr std::optional<i64> checked_mul(i64 a, i64 b) {
  i64 r = 0;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}

/// ceil(a / b) for a >= 0, b > 0, without overflow.
constexpr i64 ceil_div(i64 a, i64 b) {
  return a / b + (a % b != 0 ? 1 : 0);
}
/// Returns the smallest multiple of b that is >= a, for a >= 0, b > 0.
constexpr i64 round_up(i64 a, i64 b) {
  return ceil_div(a, b) * b;
}

}  // namespace shardtool
