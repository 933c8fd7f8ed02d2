#pragma once

#include <cstddef>
#include <vector>

namespace shardtool::kernels {

/// Sum of every `apart`-th of the numbers from `first` on: those with an even place in this row and
/// those with an odd one, each summed in the same way.
template <class T>
T sum_of_every(const std::vector<T>& numbers, size_t first, size_t apart) {
  if (apart >= numbers.size()) return numbers[first];
  return sum_of_every(numbers, first, 2 * apart) + sum_of_every(numbers, first + apart, 2 * apart);
}

/// The sum of a team in the order that kernels/device/team.h defines, written independently.
template <class T>
T sum_in_lanes(const std::vector<T>& numbers, int lanes) {
  constexpr size_t kWarp = 32;
  std::vector<T> of_warps;
  for (size_t warp = 0; warp < static_cast<size_t>(lanes); warp += kWarp) {
    std::vector<T> own(kWarp);
    for (size_t l = 0; l < kWarp; ++l) {
      for (size_t k = warp + l; k < numbers.size(); k += static_cast<size_t>(lanes)) {
        own[l] += numbers[k];
      }
    }
    of_warps.push_back(sum_of_every(own, 0, 1));
  }
  return sum_of_every(of_warps, 0, 1);
}

}  // namespace shardtool::kernels
