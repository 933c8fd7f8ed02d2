#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool {

/// Extents of a tensor, outermost axis first; empty for a scalar. Extents are never negative.
using Shape = std::vector<i64>;

/// Product of the extents (1 for a scalar), or nullopt on overflow. The result does not depend on
/// the order of the axes: [0, 2^62, 4] overflows like [2^62, 4, 0].
std::optional<i64> element_count(const Shape& shape);

/// Formats as "[4096, 14336]"; "[]" for a scalar.
std::string to_string(const Shape& shape);

}  // namespace shardtool
