#pragma once

#include <limits>

namespace shardtool::kernels {

/// A constant, since functions of numeric_limits are not for a GPU.
template <class T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();

}  // namespace shardtool::kernels
