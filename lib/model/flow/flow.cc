#include "lib/model/flow/flow.h"

#include "lib/model/flow/handoff.h"
#include "lib/ops/walk.h"

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
  return all;
}

LayerFlow flow(const Model& model, size_t layer, const LayoutOf& layouts, const mesh::Mesh& mesh,
               const mesh::Over& own_tokens, Stream& stream) {
  const Layer& walked = model.layers[layer];
  ops::Walk walk(model, {walked.number, walked.of_prompt, devices_of(model, layer, layouts)},
                 layouts, mesh, own_tokens);
  for (auto& [name, value] : stream) walk.put(name, std::move(value));
  LayerFlow made;
  for (const BoundOp& op : walked.ops) made.steps.push_back(walk.run(op));
  made.depends_on_number = walk.has_used_number();
  stream.clear();
  for (const std::string& name : walked.passes) stream[name] = walk.take(name);
  return made;
}

}  // namespace shardtool::model
