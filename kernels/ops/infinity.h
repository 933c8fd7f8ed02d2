#pragma once

#include <limits>

namespace shardtool::kernels {

/// A constant, since GPU code cannot call functions of numeric_limits.
template <class T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();

}  // namespace shardtool::kernels
