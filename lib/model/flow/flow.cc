#include "lib/model/flow/flow.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

/// Adds the weights that an op uses, in the graph's words.
void add_weights(const BoundOp& op, std::set<std::string>& weights) {
  const std::vector<ops::WeightRef>& refs = refs_of(op);
  for (size_t i = 0; i < refs.size(); ++i) {
    if (!op.weights[i].empty()) weights.insert(without_prefixes(refs[i].names.front()));
  }
}

/// Returns the weights of an op; if it uses none, those of the ops nearest before it that made its
/// inputs.
std::set<std::string> weights_behind(const Layer& layer, size_t op) {
  std::set<std::string> weights;
  add_weights(layer.ops[op], weights);
  if (!weights.empty()) return weights;
  std::set<std::string> wanted(layer.ops[op].op->in.begin(), layer.ops[op].op->in.end());
  for (size_t before = op; before-- > 0;) {
    const BoundOp& maker = layer.ops[before];
    bool makes = false;
    for (const std::string& made : maker.op->out) makes = wanted.erase(made) > 0 || makes;
    if (!makes) continue;
    const size_t known = weights.size();
    add_weights(maker, weights);
    if (weights.size() == known) wanted.insert(maker.op->in.begin(), maker.op->in.end());
  }
  return weights;
}

/// Places an op. Adds to the error of a placement that no rule accepts which op it is.
Step placed(ops::Walk& walk, const Layer& layer, size_t op) {
  try {
    return walk.run(layer.ops[op]);
  } catch (Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    const ops::Op& failed = *layer.ops[op].op;
    const std::set<std::string> weights = weights_behind(layer, op);
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
  std::set<std::string> normed;  // values that norms made
  for (size_t op = 0; op < walked.ops.size(); ++op) {
    Step step = placed(walk, walked, op);
    const ops::Op& done = *step.op->op;
    step.reads_norm = !done.in.empty() && normed.contains(done.in.front());
    for (const std::string& name : done.out) normed.erase(name);
    if (std::holds_alternative<ops::Norm>(done.kind))
      normed.insert(done.out.begin(), done.out.end());
    made.steps.push_back(std::move(step));
  }
  made.depends_on_number = walk.has_used_number();
  stream.clear();
  for (const std::string& name : walked.passes) stream[name] = walk.take(name);
  return made;
}

}  // namespace shardtool::model
