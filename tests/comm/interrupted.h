#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "tests/support/throws.h"

namespace shardtool::testing {

/// Error that ends `wait`, which another thread runs and interrupts: before it begins, or once it
/// has begun. The wait ends without the interruption, too, later and with another error.
inline std::optional<Error> interrupted(bool before, const std::function<void()>& wait) {
  std::atomic<bool> flag = before;
  std::atomic<bool> has_begun = false;
  std::optional<Error> error;
  {
    const std::jthread waiting([&] {
      const Interruptible scope(&flag);
      error = error_of([&] {
        has_begun = true;
        wait();
        return 0;
      });
    });
    while (!has_begun) std::this_thread::yield();
    flag = true;
  }
  return error;
}

}  // namespace shardtool::testing
