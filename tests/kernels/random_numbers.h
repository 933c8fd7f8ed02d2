#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/field/field.h"

namespace shardtool::kernels {

/// n random numbers of a seed: any residues, or floats within [-1, 1].
template <class T>
std::vector<T> random_numbers(size_t n, std::uint64_t seed) {
  std::vector<T> x(n);
  for (size_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, Field>) {
      x[i] = field_random(seed, i);
    } else {
      x[i] = static_cast<T>(static_cast<double>(hashed(seed, i) >> 11) * 0x1p-52 - 1);
    }
  }
  return x;
}

inline std::vector<std::byte> random_bytes(size_t n, std::uint64_t seed) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(hashed(seed, i) >> 17);
  return bytes;
}

/// True if bits are equal; NaNs are equal regardless of their payload.
template <class T>
bool same_numbers(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    }
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return false;
  }
  return true;
}

/// True if numbers differ by at most `roundings` of the larger of 1 and the numbers; residues must
/// be equal.
template <class T>
bool near_numbers(const std::vector<T>& a, const std::vector<T>& b, double roundings) {
  if constexpr (std::is_floating_point_v<T>) {
    if (roundings > 0 && a.size() == b.size()) {
      const double unit = roundings * std::numeric_limits<T>::epsilon();
      for (size_t i = 0; i < a.size(); ++i) {
        const double apart = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
        if (!(apart <= unit * std::max(1.0, std::abs(static_cast<double>(b[i]))))) return false;
      }
      return true;
    }
  }
  return same_numbers(a, b);
}

}  // namespace shardtool::kernels
