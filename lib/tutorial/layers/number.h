#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <string_view>

#include "kernels/field/field.h"
#include "lib/base/checked.h"

namespace shardtool::tutorial {

using kernels::Field;

/// Arithmetics in which a model runs. Field sums are independent of order, so a sharded run equals
/// the unsharded run bit for bit, or is wrong.
template <typename T>
concept Number = std::same_as<T, Field> || std::same_as<T, double> || std::same_as<T, float>;

/// "field", "f64", "f32".
template <Number T>
constexpr std::string_view number_name() {
  if constexpr (std::same_as<T, Field>) return "field";
  return std::same_as<T, double> ? "f64" : "f32";
}

/// Largest allowed worst() of a correct sharding: 0 in the field, rounding error in f64; for f32 it
/// is a report only.
template <Number T>
constexpr double tolerance() {
  if constexpr (std::same_as<T, Field>) return 0;
  return std::same_as<T, double> ? 1e-12 : 1e-4;
}

/// z > 0; in the field for the residue of smallest magnitude: 0 < z < p/2.
template <Number T>
constexpr bool is_positive(T z) {
  if constexpr (std::same_as<T, Field>)
    return z.v != 0 && z.v <= kernels::kFieldPrime / 2;
  else
    return z > 0;
}

template <Number T>
constexpr T from_integer(i64 n) {
  if constexpr (std::same_as<T, Field>)
    return Field::from_signed(n);
  else
    return static_cast<T>(n);
}

/// a / n, n > 0; exact in the field.
template <Number T>
constexpr T divided(T a, i64 n) {
  if constexpr (std::same_as<T, Field>)
    return a * kernels::inverse(Field::from_signed(n));
  else
    return a / static_cast<T>(n);
}

/// Number n of a seed's random sequence: any residue, or a float in [-1, 1).
template <Number T>
constexpr T random_number(std::uint64_t seed, std::uint64_t n) {
  if constexpr (std::same_as<T, Field>) return kernels::field_random(seed, n);
  // 24 bits, so that f32 and f64 hold the same number.
  else
    return static_cast<T>(kernels::hashed(seed, n) >> 40) * static_cast<T>(0x1p-23) - T{1};
}

/// a|; in the field 0 for 0 and 1 otherwise, since its elements have no size.
template <Number T>
double magnitude(T a) {
  if constexpr (std::same_as<T, Field>)
    return a == Field{} ? 0 : 1;
  else
    return std::abs(static_cast<double>(a));
}

}  // namespace shardtool::tutorial
