#pragma once

#include <cstddef>
#include <string_view>

namespace shardtool::ops {

/// The number of values that an op reads, with a description for errors; without one, errors give
/// the number.
struct Operands {
  size_t least = 1;
  size_t most = 1;
  std::string_view words = {};
};

}  // namespace shardtool::ops
