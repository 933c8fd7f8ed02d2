#include "lib/base/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace shardtool {

std::optional<i64> element_count(const Shape& shape) {
  i64 count = 1;
  for (const i64 extent : shape) {
    const auto next = checked_mul(count, std::max<i64>(extent, 1));
    if (!next) return std::nullopt;
    count = *next;
  }
  return std::find(shape.begin(), shape.end(), 0) == shape.end() ? count : 0;
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace shardtool
