#include "lib/check/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/name_map.h"
#include "lib/mapping/document/config_number.h"
#include "lib/model/graph/graph_list.h"

namespace shardtool::check {
namespace {

using TensorsByName = NameViewMap<const TensorSpec*>;

/// Name prefixes of the numbered layers of a language model.
constexpr auto kLayerPrefixes = std::to_array<std::string_view>(
    {"model.layers.", "layers.", "transformer.h.", "h.", "gpt_neox.layers.",
     "model.language_model.layers.", "language_model.model.layers.", "transformer.layers."});

/// Layer with the most common set of tensors; with the largest of equally common sets.
const Layers::value_type& usual_layer(const Layers& layers) {
  std::map<std::set<std::string_view>, i64> counts;
  for (const auto& [layer, tensors] : layers) ++counts[tensors];
  return *std::ranges::max_element(layers, {}, [&](const Layers::value_type& layer) {
    return std::pair(counts[layer.second], layer.second.size());
  });
}

/// Kinds of the layer in config.json's lists of layers, as JSON texts.
std::string kind_of(const CheckedModel& model, i64 layer) {
  std::string kind;
  for (const char* list : {"layer_types", "mlp_layer_types", "compress_ratios"}) {
    for (const char* root : {"", "text_config."}) {
      kind += mapping::said_at(fmt::format("{}{}[{}]", root, list, layer), model.config) + ' ';
    }
  }
  return kind;
}

/// Groups layers by their kind in config.json: other kinds may have other tensors.
std::vector<Layers> by_kind(const CheckedModel& model, const Layers& layers) {
  std::map<std::string, Layers> kinds;
  for (const auto& [layer, tensors] : layers) kinds[kind_of(model, layer)][layer] = tensors;
  std::vector<Layers> found;
  for (auto& [kind, of_kind] : kinds) found.push_back(std::move(of_kind));
  return found;
}

/// Tensor that a layer lacks, and the one that another layer has.
struct Lacking {
  i64 layer = 0;
  TensorSpec tensor;
  std::string_view other;
};

/// Finds tensors that a layer lacks and others of its kind have.
void add_lacking(const NumberedLayers& alike, const TensorsByName& tensors,
                 std::vector<Lacking>& lacking) {
  if (alike.layers.size() < 2) return;
  const auto& [usual_number, usual] = usual_layer(alike.layers);
  for (const auto& [layer, names] : alike.layers) {
    // A layer of another kind has tensors of its own; a layer with a proper subset lost some.
    if (names.size() >= usual.size() || !std::ranges::includes(usual, names)) continue;
    for (const std::string_view name : usual) {
      const auto other = tensors.find(fmt::format("{}{}.{}", alike.prefix, usual_number, name));
      if (names.contains(name) || other == tensors.end()) continue;
      lacking.push_back({layer, *other->second, other->second->name});
      lacking.back().tensor.name = fmt::format("{}{}.{}", alike.prefix, layer, name);
    }
  }
}

/// Names of the tensors that the model's graph reads; none without a graph that config.json fits.
std::set<std::string_view> names_read(const mapping::ModelConfig& config,
                                      std::span<const TensorSpec> tensors) {
  std::set<std::string_view> names;
  std::string why_not;
  const auto graph = model::find_graph(config, why_not);
  if (graph == nullptr) return names;
  try {
    const model::Model bound = model::bind_model(graph, config, tensors, model::Misfits::kLeaveOut);
    for (const model::Layer& layer : bound.layers) {
      for (const model::BoundOp& op : layer.ops) {
        for (const model::BoundWeight& weight : op.weights) {
          for (const size_t tensor : weight) names.insert(tensors[tensor].name);
        }
      }
    }
  } catch (const Error&) {
    return {};  // reported where the model's own tensors are bound
  }
  return names;
}

/// Drops tensors that the graph would not read if all were there, although it reads those of the
/// other layers: layers may use another one's tensors.
void drop_unneeded(const CheckedModel& model, std::vector<Lacking>& lacking) {
  if (lacking.empty()) return;
  std::vector<TensorSpec> all(model.tensors.begin(), model.tensors.end());
  for (const Lacking& one : lacking) all.push_back(one.tensor);
  const auto read = names_read(model.config, all);
  std::erase_if(lacking, [&](const Lacking& one) {
    return read.contains(one.other) && !read.contains(one.tensor.name);
  });
}

/// Splits "bert.encoder.layer.12.output.dense.weight" behind "layer.", at its first number.
std::string_view prefix_of(std::string_view name) {
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
    const std::string_view prefix = name.substr(0, dot + 1);
    if (numbered(name, prefix)) return prefix;
  }
  return {};
}

/// Layers in which an op reads a tensor that it can do without, and layers that lack it.
struct OptionalReads {
  i64 having = 0;
  i64 layer = 0;  ///< one that has it
  const TensorSpec* tensor = nullptr;
  std::vector<i64> lacking;
};

bool has_tensors(const model::Layer& layer) {
  return std::ranges::any_of(layer.ops, [](const model::BoundOp& op) {
    return std::ranges::any_of(op.weights, [](const auto& weight) { return !weight.empty(); });
  });
}

/// Adds tensors that an op can do without, and that it reads in at least as many layers.
void add_optional(const CheckedModel& model, const model::Model& bound,
                  std::vector<Lacking>& lacking) {
  std::map<const ops::WeightRef*, OptionalReads> reads;
  for (const model::Layer& layer : bound.layers) {
    if (!has_tensors(layer)) continue;
    for (const model::BoundOp& op : layer.ops) {
      const auto& refs = ops::refs_of(op);
      for (size_t i = 0; i < refs.size(); ++i) {
        if (!refs[i].optional) continue;
        OptionalReads& of_ref = reads[&refs[i]];
        if (op.weights[i].empty()) {
          of_ref.lacking.push_back(layer.number);
          continue;
        }
        ++of_ref.having;
        of_ref.layer = layer.number;
        of_ref.tensor = &model.tensors[op.weights[i].front()];
      }
    }
  }
  for (const auto& [ref, of_ref] : reads) {
    if (std::ssize(of_ref.lacking) > of_ref.having || of_ref.lacking.empty()) continue;
    const std::string_view prefix = prefix_of(of_ref.tensor->name);
    const auto found = numbered(of_ref.tensor->name, prefix);
    if (!found || found->first != of_ref.layer) continue;
    for (const i64 layer : of_ref.lacking) {
      lacking.push_back({layer, *of_ref.tensor, of_ref.tensor->name});
      lacking.back().tensor.name = fmt::format("{}{}.{}", prefix, layer, found->second);
    }
  }
}

}  // namespace

std::optional<std::pair<i64, std::string_view>> numbered(std::string_view name,
                                                         std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  i64 number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  return std::pair(number, name.substr(static_cast<size_t>(end - name.data()) + 1));
}

NumberedLayers counted_layers(const CheckedModel& model) {
  NumberedLayers most;
  for (const std::string_view prefix : kLayerPrefixes) {
    Layers layers;
    for (const TensorSpec& tensor : model.tensors) {
      if (const auto found = numbered(tensor.name, prefix))
        layers[found->first].insert(found->second);
    }
    if (layers.size() > most.layers.size()) most = {prefix, std::move(layers)};
  }
  return most;
}

void check_layers_alike(const CheckedModel& model, const NumberedLayers& counted,
                        const model::Model* bound, std::set<std::string> known,
                        Findings& findings) {
  TensorsByName tensors;
  tensors.reserve(model.tensors.size());
  for (const TensorSpec& tensor : model.tensors) tensors.emplace(tensor.name, &tensor);
  std::vector<Lacking> lacking;
  for (Layers& alike : by_kind(model, counted.layers))
    add_lacking({counted.prefix, std::move(alike)}, tensors, lacking);
  drop_unneeded(model, lacking);
  if (bound != nullptr) add_optional(model, *bound, lacking);
  for (const Lacking& one : lacking) {
    if (!known.insert(one.tensor.name).second) continue;
    findings.add(
        {.rule = CheckRule::kLayerTensor,
         .message = fmt::format("layer {} lacks a tensor that other layers have", one.layer),
         .file = model.config_file,
         .tensor = one.tensor.name,
         .fix = "fetch the missing files, unless the model's code leaves the tensor out "
                "of this layer"});
  }
}

}  // namespace shardtool::check
