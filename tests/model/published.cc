#include "tests/model/published.h"

#include <fmt/format.h>

#include <set>
#include <stdexcept>

#include "lib/mapping/document/glob.h"
#include "lib/mapping/presets.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/model/graph/graph_list.h"

namespace shardtool::model {
namespace {

using mapping::GlobToken;

/// Longest spelling of a name, including optional parts such as "model.".
std::string spelled(const std::string& glob, i64 layer) {
  std::string text;
  const mapping::Glob pattern(glob);
  for (const GlobToken& token : pattern.tokens()) {
    if (token.kind == GlobToken::Kind::kLiteral) text += token.text;
    if (token.kind == GlobToken::Kind::kNumber) text += std::to_string(layer);
    if (token.kind == GlobToken::Kind::kChoice && token.choices.front() == "model.")
      text += "model.";
  }
  return text;
}

void add(const Model& sized, const std::vector<Alternatives>& stretches, i64 layer, bool is_tied,
         std::vector<TensorSpec>& tensors, Dtype dtype) {
  for (const Alternatives& ways : stretches) {
    for (const Op& op : ways.front().ops) {
      for (const WeightRef& ref : op.weights) {
        if (ref.optional || (op.is_head && is_tied)) continue;
        Shape shape;
        for (const Dim& dim : ref.shape) shape.push_back(sized.size(dim));
        tensors.push_back({spelled(ref.names.front(), layer), dtype, std::move(shape)});
      }
    }
  }
}

std::string llama(i64 hidden, i64 heads, i64 mlp, i64 layers) {
  return fmt::format(R"({{"architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "hidden_size": {}, "num_attention_heads": {}, "num_key_value_heads": 8,
    "intermediate_size": {}, "num_hidden_layers": {}, "vocab_size": 128256}})",
                     hidden, heads, mlp, layers);
}

}  // namespace

i64 Published::parameters() const {
  i64 sum = 0;
  for (const TensorSpec& tensor : tensors) sum += element_count(tensor.shape).value();
  return sum;
}

mapping::Resolution Published::on(const std::string& mesh) const {
  const auto preset = mapping::detect_preset(config, tensors);
  mapping::ResolveOptions options;
  options.mesh = mesh::parse_mesh(mesh);
  return resolve(mapping::load_preset(preset.value()), tensors, &config, options);
}

Published published(const std::string& text, Dtype dtype) {
  auto config = mapping::parse_config(text, "config.json");
  std::string why_not;
  auto graph = find_graph(config, why_not);
  if (graph == nullptr) throw std::logic_error(why_not);
  const Model sized{sizes_of(*graph, config), graph, {}, {}, {}};
  const bool is_tied = text.find("\"tie_word_embeddings\": true") != std::string::npos;
  std::vector<TensorSpec> tensors;
  const Stack& stack = graph->stacks.front();
  add(sized, stack.start, -1, is_tied, tensors, dtype);
  for (i64 layer = 0; layer < sized.sizes.at("layers"); ++layer) {
    add(sized, stack.blocks.front().stretches, layer, is_tied, tensors, dtype);
  }
  add(sized, graph->end, -1, is_tied, tensors, dtype);
  Model bound = bind_model(std::move(graph), config, tensors);
  return {std::move(config), std::move(tensors), std::move(bound)};
}

Published llama_3_8b(Dtype dtype) {
  return published(llama(4096, 32, 14336, 32), dtype);
}
Published llama_3_70b(Dtype dtype) {
  return published(llama(8192, 64, 28672, 80), dtype);
}
Published llama_3_405b() {
  return published(llama(16384, 128, 53248, 126));
}

StoredWeights weights_of(const mapping::Resolution& resolution, size_t tensors) {
  const LayoutOf layouts = layouts_of(resolution, tensors);
  return {{}, layouts, layouts};
}

Price price(const Model& model, std::span<const TensorSpec> tensors, const StoredWeights& weights,
            const mesh::Mesh& mesh, const ReplicaWorkload& workload,
            const plan::HardwareProfile* profile) {
  const ForwardPass pass(model, tensors, weights, mesh);
  return {pass.prefill(workload, profile), pass.decode(workload, profile)};
}

LayoutOf layouts_of(const mapping::Resolution& resolution, size_t tensors) {
  std::vector<const layout::Layout*> by_tensor(tensors);
  for (const mapping::ResolvedTensor& tensor : resolution.tensors) {
    by_tensor[tensor.tensor] = tensor.layout.get();
  }
  return [by_tensor = std::move(by_tensor)](size_t tensor) -> const layout::Layout& {
    return *by_tensor.at(tensor);
  };
}

}  // namespace shardtool::model
