#pragma once

#include <vector>

#include "lib/tutorial/shardings/systems.h"

namespace shardtool::tutorial {

/// A model with a batch and a gradient to pull back, all whole, the same on every device.
template <Number T>
struct Example {
  Parameters<T> parameters;
  Matrix<T> x;
  Matrix<T> g;            ///< dL/dy
  Assignment assignment;  ///< for a model with experts; else empty
};

/// Random layers sizes[0] -> sizes[1] -> ..., with biases, from a seed.
template <Number T>
Example<T> random_layers(const std::vector<i64>& sizes, i64 batch, std::uint64_t seed);

/// Random experts of two layers each, with biases, and an assignment from a seed, except that the
/// first two rows go to experts 0 and 1.
template <Number T>
Example<T> random_experts(const TwoLayers& sizes, i64 n_experts, i64 batch, std::uint64_t seed);

/// The same without the biases.
template <Number T>
Example<T> without_biases(Example<T> example);

/// Results of one device that multiplies on the CPU, the reference for all others.
template <Number T>
struct Yardstick {
  Matrix<T> y;
  Parameters<T> gradients;
};
template <Number T>
Yardstick<T> yardstick(const Example<T>& example);

/// A direction of change for x (as "dx") and every parameter.
template <Number T>
Parameters<T> random_direction(const Example<T>& example, std::uint64_t seed);

/// J v: the change of y along a direction v.
template <Number T>
Matrix<T> push_forward(const Example<T>& example, const Parameters<T>& direction);

/// <Jv, g> - <v, J^T g>| with the given J^T g: in the field 0, or 1 if a gradient is wrong; in
/// floats relative to the sum of the magnitudes of the terms.
template <Number T>
double adjoint_gap(const Example<T>& example, const Parameters<T>& gradients, std::uint64_t seed);

/// (L(p + h v) - L(p - h v)) / 2h - <v, gradients> for L = <y, g> and h = 1e-6, relative to the
/// larger of the two. Only f64 has enough digits for it.
double directional_gap(const Example<double>& example, const Parameters<double>& gradients,
                       std::uint64_t seed);

}  // namespace shardtool::tutorial
