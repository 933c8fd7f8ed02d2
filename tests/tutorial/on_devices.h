#pragma once

#include <optional>
#include <type_traits>
#include <vector>

#include "lib/comm/embedded.h"
#include "lib/tutorial/device.h"

namespace shardtool::tutorial {

/// Runs `body(device)` on `n` devices of the embedded engine and returns the results in device
/// order.
template <Number T, class Body>
auto on_devices(int n, Body&& body) {
  using Result = std::invoke_result_t<Body&, Device<T>&>;
  std::vector<std::optional<Result>> found(static_cast<size_t>(n));
  comm::run_embedded(n, [&](comm::Communicator& comm) {
    Device<T> device(comm);
    found[static_cast<size_t>(comm.rank())] = body(device);
  });
  std::vector<Result> results;
  for (auto& result : found) results.push_back(std::move(*result));
  return results;
}

/// A matrix from its rows, in any arithmetic.
template <Number T>
Matrix<T> matrix_of(const std::vector<std::vector<i64>>& rows) {
  Matrix<T> matrix(static_cast<i64>(rows.size()), static_cast<i64>(rows.front().size()));
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t c = 0; c < rows[r].size(); ++c) {
      matrix(static_cast<i64>(r), static_cast<i64>(c)) = from_integer<T>(rows[r][c]);
    }
  }
  return matrix;
}

}  // namespace shardtool::tutorial
