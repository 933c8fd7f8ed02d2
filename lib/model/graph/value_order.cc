#include "lib/model/graph/value_order.h"

#include <fmt/format.h>

#include <ranges>
#include <set>

#include "lib/base/error.h"

namespace shardtool::model {
namespace {

using Names = std::set<std::string>;

/// Checks the chosen ways of a layer: ways of one stretch make different values.
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
  // Goes from the last layer to the first, with the values that later layers read and none between
  // makes.
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
