#pragma once

#include "lib/tutorial/layers/layers.h"
#include "tests/tutorial/on_devices.h"

namespace shardtool::tutorial {

/// A two-layer model small enough to be worked out by hand.
///
///     z = x W0 = [1, 1, 0, 6]     h = relu(z) = z     y = h W1 = [13, -5]
///     g = [1, 1]     dh = g W1^T = [1, 1, 2, 1]     dz = dh where z > 0 = [1, 1, 0, 1]
template <Number T>
struct Textbook {
  Matrix<T> x = matrix_of<T>({{1, 2}});
  Matrix<T> g = matrix_of<T>({{1, 1}});
  Parameters<T> parameters{{"layer_0/weights", matrix_of<T>({{1, -1, 2, 0}, {0, 1, -1, 3}})},
                           {"layer_1/weights", matrix_of<T>({{1, 0}, {0, 1}, {1, 1}, {2, -1}})}};
  Matrix<T> z = matrix_of<T>({{1, 1, 0, 6}});
  Matrix<T> y = matrix_of<T>({{13, -5}});
  Parameters<T> gradients{{"dx", matrix_of<T>({{0, 4}})},
                          {"layer_0/weights", matrix_of<T>({{1, 1, 0, 1}, {2, 2, 0, 2}})},
                          {"layer_1/weights", matrix_of<T>({{1, 1}, {1, 1}, {0, 0}, {6, 6}})}};
};

}  // namespace shardtool::tutorial
