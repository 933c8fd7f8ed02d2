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

/// Tensor that a layer lacks, and the one of another layer that is like it.
struct Lacking {
  i64 layer = 0;
  TensorSpec tensor;
  std::string_view other;
  std::string_view what = "lacks a tensor that other layers have";
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

/// As add_lacking, where one layer has fewer tensors than all others, of which there are three or
/// more and which have the same: for layers of which config.json says nothing.
void add_lone_lacking(const NumberedLayers& alike, const TensorsByName& tensors,
                      std::vector<Lacking>& lacking) {
  constexpr i64 kOthers = 3;
  if (std::ssize(alike.layers) <= kOthers) return;
  const auto& usual = usual_layer(alike.layers).second;
  const i64 others = std::ranges::count(alike.layers, usual, &Layers::value_type::second);
  if (others + 1 == std::ssize(alike.layers)) add_lacking(alike, tensors, lacking);
}

/// Splits layers by module: one has the names that begin with "self_attn.", in the layers that have
/// such.
std::vector<Layers> by_module(const Layers& layers) {
  std::map<std::string_view, Layers> modules;
  for (const auto& [layer, names] : layers) {
    for (const std::string_view name : names) {
      const size_t dot = name.find('.');
      if (dot != name.npos) modules[name.substr(0, dot)][layer].insert(name);
    }
  }
  std::vector<Layers> found;
  for (auto& [name, of_module] : modules) found.push_back(std::move(of_module));
  return found;
}

/// Returns the name up to its first number: "bert.encoder.layer." of
/// "bert.encoder.layer.12.output.dense.weight". Empty if it has none.
std::string_view prefix_of(std::string_view name) {
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
    const std::string_view prefix = name.substr(0, dot + 1);
    if (numbered(name, prefix)) return prefix;
  }
  return {};
}

/// Returns all numbered layers whose names begin otherwise than those that config.json counts:
/// those of a vision encoder, and lists that are no layers, which have few tensors each.
std::vector<NumberedLayers> other_layers(const CheckedModel& model, std::string_view counted) {
  constexpr size_t kFew = 4;
  std::map<std::string_view, Layers> lists;
  for (const TensorSpec& tensor : model.tensors) {
    const std::string_view prefix = prefix_of(tensor.name);
    if (prefix.empty() || prefix == counted) continue;
    const auto [layer, name] = *numbered(tensor.name, prefix);
    lists[prefix][layer].insert(name);
  }
  std::vector<NumberedLayers> found;
  for (auto& [prefix, layers] : lists) {
    if (usual_layer(layers).second.size() >= kFew) found.push_back({prefix, std::move(layers)});
  }
  return found;
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

std::string_view before_last_dot(std::string_view name) {
  return name.substr(0, std::min(name.rfind('.'), name.size()));
}

/// First tensor that an op needs, in one layer.
struct Needed {
  i64 layer = 0;
  std::string_view name;  ///< empty if the layer lacks it, or the op needs none
};

/// Layers in which an op reads a tensor that it can do without, and layers that lack it.
struct OptionalReads {
  i64 having = 0;
  Needed in_one;  ///< of the layers that have it
  const TensorSpec* tensor = nullptr;
  std::vector<Needed> lacking;
};

/// Returns the name that the tensor would have in a layer that lacks it: spelled as what the op
/// reads there, else as in the other layer; empty if that one's name has no number.
std::string name_of_lacking(const OptionalReads& reads, const Needed& there) {
  const std::string& name = reads.tensor->name;
  const std::string_view stem = before_last_dot(reads.in_one.name);
  if (!there.name.empty() && before_last_dot(name) == stem)
    return fmt::format("{}{}", before_last_dot(there.name), name.substr(stem.size()));
  const std::string_view prefix = prefix_of(name);
  const auto found = numbered(name, prefix);
  if (!found || found->first != reads.in_one.layer) return {};
  return fmt::format("{}{}.{}", prefix, there.layer, found->second);
}

bool has_tensors(const model::Layer& layer) {
  return std::ranges::any_of(layer.ops, [](const model::BoundOp& op) {
    return std::ranges::any_of(op.weights, [](const auto& weight) { return !weight.empty(); });
  });
}

/// Returns the name of the first tensor that the op needs; empty if there is none.
std::string_view needed_by(const CheckedModel& model, const model::BoundOp& op) {
  const auto& refs = ops::refs_of(op);
  for (size_t i = 0; i < refs.size(); ++i) {
    if (!refs[i].optional && !op.weights[i].empty())
      return model.tensors[op.weights[i].front()].name;
  }
  return {};
}

/// Returns the layers that have or lack each tensor that an op can do without, by its names in the
/// graph, which ops of several kinds of layers share.
std::map<std::vector<std::string>, OptionalReads> optional_reads(const CheckedModel& model,
                                                                 const model::Model& bound) {
  std::map<std::vector<std::string>, OptionalReads> reads;
  for (const model::Layer& layer : bound.layers) {
    if (!has_tensors(layer)) continue;
    for (const model::BoundOp& op : layer.ops) {
      const auto& refs = ops::refs_of(op);
      const Needed needed{layer.number, needed_by(model, op)};
      for (size_t i = 0; i < refs.size(); ++i) {
        if (!refs[i].optional) continue;
        OptionalReads& of_ref = reads[refs[i].names];
        if (op.weights[i].empty()) {
          of_ref.lacking.push_back(needed);
          continue;
        }
        ++of_ref.having;
        of_ref.in_one = needed;
        of_ref.tensor = &model.tensors[op.weights[i].front()];
      }
    }
  }
  return reads;
}

/// Adds tensors that an op can do without, and that it reads in at least as many layers; and a
/// bias that one layer has, and three or more lack.
void add_optional(const CheckedModel& model, const model::Model& bound,
                  std::vector<Lacking>& lacking) {
  constexpr i64 kOthers = 3;
  auto reads = optional_reads(model, bound);
  for (auto& [names, of_ref] : reads) {
    // A layer without what the op needs may be of a kind without this op.
    std::erase_if(of_ref.lacking, [&](const Needed& there) {
      return there.name.empty() && !of_ref.in_one.name.empty();
    });
    if (of_ref.having == 1 && std::ssize(of_ref.lacking) >= kOthers &&
        of_ref.tensor->name.ends_with(".bias")) {
      lacking.push_back(
          {of_ref.in_one.layer, *of_ref.tensor, "", "has a bias that other layers lack"});
    }
    if (std::ssize(of_ref.lacking) > of_ref.having || of_ref.lacking.empty()) continue;
    for (const Needed& there : of_ref.lacking) {
      const std::string name = name_of_lacking(of_ref, there);
      if (name.empty()) continue;
      lacking.push_back({there.layer, *of_ref.tensor, of_ref.tensor->name});
      lacking.back().tensor.name = name;
    }
  }
}

/// Linear ops of a layer that multiply one value, with matrices beside each other, such as
/// q_proj, k_proj and v_proj.
struct MatricesBeside {
  i64 having = 0;                       ///< a bias
  std::vector<std::string_view> stems;  ///< "layers.0.self_attn.k_proj" of those that lack it
};

/// Adds biases that a matrix lacks and at least as many beside it have: also if there is one layer.
void add_beside(const CheckedModel& model, const model::Layer& layer,
                std::vector<Lacking>& lacking) {
  std::map<std::pair<std::string_view, std::string_view>, MatricesBeside> groups;
  for (const model::BoundOp& op : layer.ops) {
    const auto& refs = ops::refs_of(op);
    const bool may_have_bias = std::holds_alternative<ops::Linear>(op.op->kind) &&
                               refs.size() > 1 && refs[1].optional && !op.weights[0].empty();
    if (!may_have_bias) continue;
    const std::string_view stem = before_last_dot(model.tensors[op.weights[0].front()].name);
    MatricesBeside& group = groups[{op.op->in.front(), before_last_dot(stem)}];
    if (op.weights[1].empty()) {
      group.stems.push_back(stem);
    } else {
      ++group.having;
    }
  }
  for (const auto& [place, group] : groups) {
    if (std::ssize(group.stems) > group.having) continue;
    for (const std::string_view stem : group.stems) {
      lacking.push_back({layer.number, {}, "", "lacks a bias that the matrices beside it have"});
      lacking.back().tensor.name = fmt::format("{}.bias", stem);
    }
  }
}

/// Adds the weights of modules of which nothing but a bias is there: also if there is one layer.
void add_weights_of_biases(const CheckedModel& model, std::vector<Lacking>& lacking) {
  std::vector<std::string_view> names;
  for (const TensorSpec& tensor : model.tensors) names.emplace_back(tensor.name);
  std::ranges::sort(names);  // those of a module follow each other
  constexpr std::string_view kBias = "bias";
  for (size_t i = 0; i < names.size(); ++i) {
    const auto layer = numbered(names[i], prefix_of(names[i]));
    if (!layer || !layer->second.ends_with(".bias")) continue;
    const std::string_view module = names[i].substr(0, names[i].size() - kBias.size());
    const bool is_alone = (i == 0 || !names[i - 1].starts_with(module)) &&
                          (i + 1 == names.size() || !names[i + 1].starts_with(module));
    if (!is_alone) continue;
    lacking.push_back({layer->first, {}, "", "lacks a weight of which the bias is there"});
    lacking.back().tensor.name = fmt::format("{}weight", module);
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
  for (Layers& alike : by_kind(model, counted.layers)) {
    for (Layers& of_module : by_module(alike))
      add_lone_lacking({counted.prefix, std::move(of_module)}, tensors, lacking);
    add_lacking({counted.prefix, std::move(alike)}, tensors, lacking);
  }
  for (const NumberedLayers& other : other_layers(model, counted.prefix))
    add_lone_lacking(other, tensors, lacking);
  drop_unneeded(model, lacking);
  if (has_known_names(model.config)) add_weights_of_biases(model, lacking);
  if (bound != nullptr) {
    add_optional(model, *bound, lacking);
    for (const model::Layer& layer : bound->layers) add_beside(model, layer, lacking);
  }
  for (const Lacking& one : lacking) {
    if (!known.insert(one.tensor.name).second) continue;
    findings.add({.rule = CheckRule::kLayerTensor,
                  .message = fmt::format("layer {} {}", one.layer, one.what),
                  .file = model.config_file,
                  .tensor = one.tensor.name,
                  .fix = "fetch the missing files, unless the model's code leaves the tensor out "
                         "of this layer"});
  }
}

}  // namespace shardtool::check
