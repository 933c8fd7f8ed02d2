#include "lib/model/graph/value_order.h"

#include <fmt/format.h>

#include <ranges>
#include <set>

#include "lib/base/error.h"

namespace shardtool::model {
namespace {

using Names = std::set<std::string>;

/// Checks that values are made before they are read. Only the chosen ways of the layer are known to
/// make their values.
void check_layer(const Model& model, const Layer& layer, const Names& passing) {
  Names made;
  for (const BoundOp& bound : layer.ops) {
    for (const std::string& name : bound.op->in) {
      if (made.contains(name) || passing.contains(name)) continue;
      throw Error(ErrorCode::kMappingSchema,
                  fmt::format("the graph of {} reads '{}' in '{}', and no op before it there makes "
                              "that",
                              model.graph->family, name, layer.block))
          .at(bound.op->place);
    }
    made.insert(bound.op->out.begin(), bound.op->out.end());
  }
}

}  // namespace

void order_values(Model& model) {
  Names passing(model.graph->passed.begin(), model.graph->passed.end());
  passing.insert("x");
  for (const Layer& layer : model.layers) check_layer(model, layer, passing);
  // Goes backward from the last layer, with the values that later layers read before they are made
  // again.
  Names read_later;
  for (Layer& layer : model.layers | std::views::reverse) {
    layer.passes.assign(read_later.begin(), read_later.end());
    for (const BoundOp& bound : layer.ops | std::views::reverse) {
      for (const std::string& name : bound.op->out) read_later.erase(name);
      for (const std::string& name : bound.op->in) {
        if (passing.contains(name)) read_later.insert(name);
      }
    }
  }
  if (!read_later.empty()) {
    throw Error(ErrorCode::kMappingSchema,
                fmt::format("the graph of {} reads '{}' in a layer, and none before it makes that",
                            model.graph->family, *read_later.begin()));
  }
  if (model.layers.back().ops.empty()) {
    throw Error(ErrorCode::kMappingSchema,
                fmt::format("the graph of {} ends with nothing", model.graph->family));
  }
  model.layers.back().passes = {model.layers.back().ops.back().op->out.front()};
}

}  // namespace shardtool::model
