#include "lib/tutorial/layers/matrix.h"

#include <fmt/format.h>

namespace shardtool::tutorial {

void require_extent(std::string_view what, i64 found, i64 expected) {
  if (found == expected) return;
  throw Error(ErrorCode::kShapeMismatch, fmt::format("{}: {}, expected {}", what, found, expected));
}

}  // namespace shardtool::tutorial
