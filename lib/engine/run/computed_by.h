#pragma once

#include "lib/base/checked.h"

namespace shardtool::engine {

/// Who computed the products of an accelerator.
struct ComputedBy {
  i64 library = 0;  ///< in the weights' type, see kernels::NativeProducts
  i64 kernels = 0;  ///< of ours

  ComputedBy& operator+=(const ComputedBy& other) {
    library += other.library;
    kernels += other.kernels;
    return *this;
  }
};

}  // namespace shardtool::engine
