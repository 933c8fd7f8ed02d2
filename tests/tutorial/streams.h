#pragma once

#include <optional>
#include <vector>

#include "lib/tutorial/catalogue.h"

namespace shardtool::tutorial {

/// Sizes without a common divisor, so that no number of devices from 2 on divides them all.
inline constexpr DemoSizes kStreamSizes{6, 10, 5, 7, 1};

/// Inputs that a system accepts; batches differ if allowed.
template <Number T>
std::vector<Matrix<T>> inputs_for(const SystemCase<T>& one, int n) {
  std::vector<Matrix<T>> inputs;
  for (int i = 0; i < n; ++i) {
    // An expert assignment has a fixed batch size; all other systems accept any.
    const i64 batch =
        one.example.assignment.empty() ? kStreamSizes.batch + i % 4 : kStreamSizes.batch;
    inputs.push_back(
        random_matrix<T>(batch, kStreamSizes.in, static_cast<std::uint64_t>(1000 + i)));
  }
  return inputs;
}

/// Outputs of a single device for them.
template <Number T>
std::vector<Matrix<T>> expected_outputs(const SystemCase<T>& one,
                                        const std::vector<Matrix<T>>& inputs) {
  std::vector<Matrix<T>> outputs;
  for (const Matrix<T>& x : inputs) {
    Example<T> example = one.example;
    example.x = x;
    example.g = Matrix<T>(x.rows(), example.g.columns());
    outputs.push_back(yardstick(example).y);
  }
  return outputs;
}

/// Outputs of device 0; empty on the others, whose streams must not be used.
template <Number T>
std::vector<Matrix<T>> stream(Device<T>& device, const SystemCase<T>& one,
                              const std::vector<Matrix<T>>& inputs) {
  const auto system = one.make(device);
  system->load_checkpoint(one.example.parameters);
  const bool leads = device.device_id() == 0;
  size_t next = 0;
  std::vector<Matrix<T>> outputs;
  system->inference_loop(
      [&]() -> std::optional<Matrix<T>> {
        if (!leads) throw Error(ErrorCode::kInternal, "a follower's input was touched");
        if (next == inputs.size()) return std::nullopt;
        return inputs[next++];
      },
      [&](const Matrix<T>& y) {
        if (!leads) throw Error(ErrorCode::kInternal, "a follower's output was touched");
        outputs.push_back(y);
      });
  return outputs;
}

}  // namespace shardtool::tutorial
