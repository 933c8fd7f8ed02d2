#include "shardtool/model/flow.h"

#include "shardtool/model/walk.h"

namespace shardtool::model {

std::vector<Exchange> exchanges(const Step& step) {
  std::vector<Exchange> all;
  for (const Step::Input& input : step.before) all.push_back(input.exchange);
  all.insert(all.end(), step.after.begin(), step.after.end());
  return all;
}

std::vector<Exchange> exchanges(const LayerFlow& flow) {
  std::vector<Exchange> all;
  for (const Step& step : flow.steps) {
    const auto some = exchanges(step);
    all.insert(all.end(), some.begin(), some.end());
  }
  if (flow.handoff) all.push_back(*flow.handoff);
  return all;
}

LayerFlow flow(const Model& model, const Layer& layer, const LayoutOf& layouts,
               const mesh::Mesh& mesh, const mesh::Over& own_tokens, Value& x) {
  Walk walk(model, layouts, mesh, own_tokens);
  walk.put("x", x);
  for (const BoundOp& op : layer.ops) walk.step(op);
  x = layer.block == "end" ? walk.take(layer.ops.back().op->out.front()) : walk.take("x");
  return std::move(walk).finish();
}

}  // namespace shardtool::model
