#pragma once

#include <cstddef>
#include <string_view>

namespace shardtool::ops {

/// The number of values that an op reads, and its description in errors; without a description the
/// number says it.
struct Operands {
  size_t least = 1;
  size_t most = 1;
  std::string_view words = {};
};

}  // namespace shardtool::ops
