#include "lib/model/live_ops.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/model/graph/value_order.h"

namespace shardtool::model {

void remove_dead_ops(Model& model) {
  // Goes backward from the model's result, with the values that later ops read.
  std::set<std::string> read(model.layers.back().passes.begin(), model.layers.back().passes.end());
  for (Layer& layer : model.layers | std::views::reverse) {
    std::vector<BoundOp> live;
    for (BoundOp& bound : layer.ops | std::views::reverse) {
      const auto is_read = [&](const std::string& name) { return read.contains(name); };
      if (std::ranges::none_of(bound.op->out, is_read)) continue;
      for (const std::string& name : bound.op->out) read.erase(name);
      read.insert(bound.op->in.begin(), bound.op->in.end());
      live.push_back(std::move(bound));
    }
    std::ranges::reverse(live);
    layer.ops = std::move(live);
  }
  order_values(model);
}

}  // namespace shardtool::model
