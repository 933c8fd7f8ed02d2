#include "lib/model/graph/layer_number.h"

#include <fmt/format.h>

#include "lib/base/error.h"

namespace shardtool::model {

i64 value_at(const LayerNumber& number, const mapping::ModelConfig& config, i64 layer) {
  std::vector<i64> before;
  for (i64 other = 0; other <= layer; ++other) {
    if (contains(number.among, config, other)) before.push_back(other);
  }
  const bool is_one = !before.empty() && before.back() == layer;
  const i64 place = std::ssize(before) - (is_one ? 1 : 0);
  if (!number.cycle) return place;
  const double cycle = mapping::value_of(*number.cycle, config);
  if (!(cycle >= 1)) {
    throw Error(ErrorCode::kConfig, fmt::format("{} has layers that share weights in turns of {}",
                                                config.file(), cycle));
  }
  const auto turn = static_cast<size_t>(place % static_cast<i64>(cycle));
  return turn < before.size() ? before[turn] : layer;
}

}  // namespace shardtool::model
