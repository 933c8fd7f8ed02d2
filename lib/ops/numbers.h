#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/ops/activated.h"
#include "kernels/ops/surrogate.h"
#include "kernels/product/product.h"

/// Functions that differ between residues and floats; bodies of ops are written once for both.
namespace shardtool::ops {

using kernels::Field;

template <class N>
constexpr bool is_field = std::is_same_v<N, Field>;

/// Converts stored elements to numbers.
template <class N>
void to_numbers(Dtype dtype, kernels::NumberMap map, const std::byte* elements, i64 n, N* numbers) {
  if constexpr (is_field<N>) {
    kernels::to_residues(dtype, map, elements, n, numbers);
  } else if constexpr (std::is_same_v<N, double>) {
    kernels::to_doubles(dtype, elements, n, numbers);
  } else {
    kernels::to_floats(dtype, elements, n, numbers);
  }
}

/// Converts a constant of the config, such as a scale or a cap.
template <class N>
N number_of(double value) {
  if constexpr (is_field<N>) {
    return kernels::residue_of(value);
  } else {
    return static_cast<N>(value);
  }
}

/// Returns a random number, a float between -1 and 1.
template <class N>
N any_number(std::uint64_t seed, std::uint64_t index) {
  if constexpr (is_field<N>) {
    return kernels::field_random(seed, index);
  } else {
    constexpr double kHalf = 1ULL << 63;
    return static_cast<N>(static_cast<double>(kernels::hashed(seed, index)) / kHalf - 1);
  }
}

template <class N>
void multiply_rows(const kernels::StoredMatrix& w, kernels::NumberMap map,
                   kernels::RowView<const N> x, kernels::RowView<N> y) {
  if constexpr (is_field<N>) {
    kernels::multiply_rows(w, map, x, y);
  } else {
    kernels::multiply_rows(w, x, y);
  }
}
template <class N>
void add_columns(const kernels::StoredMatrix& w, kernels::NumberMap map,
                 kernels::RowView<const N> x, kernels::RowView<N> y) {
  if constexpr (is_field<N>) {
    kernels::add_columns(w, map, x, y);
  } else {
    kernels::add_columns(w, x, y);
  }
}

using kernels::activated;

/// cap * tanh(x / cap).
template <class N>
N capped(double cap, N x) {
  if constexpr (is_field<N>) {
    return kernels::surrogate(kernels::Surrogate::kSoftcap, x + kernels::residue_of(cap));
  } else {
    return static_cast<N>(cap) * std::tanh(x / static_cast<N>(cap));
  }
}

/// Clamps x to [-limit, limit].
template <class N>
N limited(double limit, N x) {
  return kernels::limited(number_of<N>(limit), x);
}

/// Returns the smaller of x and the limit.
template <class N>
N at_most(double limit, N x) {
  return kernels::at_most(number_of<N>(limit), x);
}

}  // namespace shardtool::ops
