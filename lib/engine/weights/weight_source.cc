#include "lib/engine/weights/weight_source.h"

#include <algorithm>

namespace shardtool::engine {

std::vector<std::string> alike_along(const WeightSource& source, std::span<const size_t> tensors) {
  if (tensors.empty()) return {};
  std::vector<std::string> axes = source.alike_along(tensors.front());
  for (const size_t tensor : tensors.subspan(1)) {
    if (axes.empty()) break;
    const std::vector<std::string> others = source.alike_along(tensor);
    std::erase_if(axes, [&](const std::string& axis) {
      return std::ranges::find(others, axis) == others.end();
    });
  }
  return axes;
}

}  // namespace shardtool::engine
