#pragma once

#include <atomic>

#include "lib/base/error.h"

namespace shardtool::ops {

/// Throws kInterrupted if the flag is set; null: never.
inline void throw_if_stopped(const std::atomic<bool>* cancel) {
  if (cancel != nullptr && *cancel) {
    throw Error(ErrorCode::kInterrupted, "validating was interrupted");
  }
}

}  // namespace shardtool::ops
