#pragma once

#include "lib/base/checked.h"

namespace shardtool::engine {

/// Number of an accelerator's products by implementation.
struct ComputedBy {
  i64 library = 0;  ///< by the library, in the weights' type; see kernels::NativeProducts
  i64 kernels = 0;  ///< by our kernels

  ComputedBy& operator+=(const ComputedBy& other) {
    library += other.library;
    kernels += other.kernels;
    return *this;
  }
};

}  // namespace shardtool::engine
