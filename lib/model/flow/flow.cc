#include "lib/model/flow/flow.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "lib/base/error.h"
#include "lib/model/flow/handoff.h"
#include "lib/ops/op_table.h"
#include "lib/ops/walk.h"

namespace shardtool::model {
namespace {

/// Removes the choices that a name begins with: "{model.,}layers.<layer>.w" is "layers.<layer>.w".
std::string without_prefixes(const std::string& name) {
  size_t begin = 0;
  while (begin < name.size() && name[begin] == '{') begin = name.find('}', begin) + 1;
  return name.substr(begin);
}

/// Collects the weights that an op of the layer uses, in the graph's words; if it uses none, those
/// of the ops that made its inputs.
void add_weights(const Layer& layer, size_t op, std::set<std::string>& weights) {
  const BoundOp& used = layer.ops[op];
  const std::vector<ops::WeightRef>& refs = refs_of(used);
  for (size_t i = 0; i < refs.size(); ++i) {
    if (!used.weights[i].empty()) weights.insert(without_prefixes(refs[i].names.front()));
  }
  if (!weights.empty()) return;
  for (const std::string& input : used.op->in) {
    for (size_t before = op; before-- > 0;) {
      const std::vector<std::string>& made = layer.ops[before].op->out;
      if (std::find(made.begin(), made.end(), input) == made.end()) continue;
      std::set<std::string> behind;
      add_weights(layer, before, behind);
      weights.merge(behind);
      break;
    }
  }
}

/// Places an op. Adds to the error of a placement that no rule accepts which op it is.
Step placed(ops::Walk& walk, const Layer& layer, size_t op) {
  try {
    return walk.run(layer.ops[op]);
  } catch (Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    const ops::Op& failed = *layer.ops[op].op;
    std::set<std::string> weights;
    add_weights(layer, op, weights);
    error.note("op", fmt::format("{}, which makes '{}', in {}", failed.row->name,
                                 fmt::join(failed.out, "', '"), name_of(layer)));
    if (!weights.empty()) error.note("weights", fmt::format("{}", fmt::join(weights, ", ")));
    throw;
  }
}

}  // namespace

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
  for (size_t op = 0; op < walked.ops.size(); ++op) made.steps.push_back(placed(walk, walked, op));
  made.depends_on_number = walk.has_used_number();
  stream.clear();
  for (const std::string& name : walked.passes) stream[name] = walk.take(name);
  return made;
}

}  // namespace shardtool::model
