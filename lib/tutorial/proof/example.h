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

/// J v: the change of y along a direction v.
template <Number T>
Matrix<T> push_forward(const Example<T>& example, const Parameters<T>& direction);

/// A random direction v of change for x (as "dx") and every parameter, and what it does to the
/// loss: <Jv, g>.
template <Number T>
struct Tangent {
  Parameters<T> direction;
  T change{};
};
template <Number T>
Tangent<T> tangent(const Example<T>& example, std::uint64_t seed);

/// |<Jv, g> - <v, J^T g>| with the given J^T g: in the field 0, or 1 if a gradient is wrong; in
/// floats relative to the sum of the magnitudes of the terms.
template <Number T>
double adjoint_gap(const Tangent<T>& tangent, const Parameters<T>& gradients);

/// Results of the unsharded run, with which a proof compares a sharded one. They depend on the
/// example alone, so that all devices share one.
template <Number T>
struct Reference {
  Yardstick<T> results;  ///< gradients of parameters divided by `divisor`
  Tangent<T> tangent;
  i64 divisor = 1;  ///< number of devices for a system that averages
};
template <Number T>
Reference<T> reference_of(const Example<T>& example, i64 divisor);

/// (L(p + h v) - L(p - h v)) / 2h - <v, gradients> for L = <y, g> and h = 1e-6, relative to the
/// larger of the two. Only f64 has enough digits for it.
double directional_gap(const Example<double>& example, const Parameters<double>& gradients,
                       std::uint64_t seed);

}  // namespace shardtool::tutorial
