#include "lib/model/flow/flow.h"

#include "lib/model/flow/walk.h"

namespace shardtool::model {

std::vector<Exchange> exchanges(const Step& step) {
  std::vector<Exchange> all;
  for (const ValueMove& input : step.before) all.push_back(input.exchange);
  all.insert(all.end(), step.after.begin(), step.after.end());
  return all;
}

std::vector<Exchange> exchanges(const LayerFlow& flow) {
  std::vector<Exchange> all;
  for (const Step& step : flow.steps) {
    const auto some = exchanges(step);
    all.insert(all.end(), some.begin(), some.end());
  }
  for (const ValueMove& handoff : flow.handoffs) all.push_back(handoff.exchange);
  return all;
}

LayerFlow flow(const Model& model, size_t layer, const LayoutOf& layouts, const mesh::Mesh& mesh,
               const mesh::Over& own_tokens, Stream& stream) {
  Walk walk(model, layer, layouts, mesh, own_tokens);
  for (auto& [name, value] : stream) walk.put(name, std::move(value));
  for (const BoundOp& op : model.layers[layer].ops) walk.step(op);
  stream.clear();
  for (const std::string& name : model.layers[layer].passes) stream[name] = walk.take(name);
  return std::move(walk).finish();
}

}  // namespace shardtool::model
