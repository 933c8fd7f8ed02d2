#pragma once

#include "kernels/both.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// data[i] = value.
template <class T>
struct Fill {
  T* data = nullptr;
  i64 n = 0;
  T value{};

  SHARDTOOL_BOTH i64 count() const { return n; }
  SHARDTOOL_BOTH void operator()(i64 i) const { data[i] = value; }
};

}  // namespace shardtool::kernels
