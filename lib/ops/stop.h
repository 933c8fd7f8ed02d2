#pragma once

#include <atomic>

#include "lib/base/error.h"

namespace shardtool::ops {

/// Throws kInterrupted where the flag is up; null: never.
inline void throw_if_stopped(const std::atomic<bool>* cancel) {
  if (cancel != nullptr && *cancel) {
    throw Error(ErrorCode::kInterrupted, "validating was interrupted");
  }
}

}  // namespace shardtool::ops
