#include "lib/api/planning/planned_model.h"

#include <algorithm>
#include <utility>

#include "lib/api/planning/cache_dtype.h"
#include "lib/api/planning/unpacked_tensors.h"
#include "lib/base/error.h"
#include "lib/model/graph/graph_list.h"
#include "lib/model/packed_format.h"

namespace shardtool::api {
namespace {

using model::TensorClass;

/// Returns the graph for a model. Sets why_not if there is none, and `borrowed` if it is another
/// family's.
std::shared_ptr<const model::Graph> graph_for(const mapping::ModelConfig& config,
                                              std::shared_ptr<const model::Graph> own,
                                              const mapping::Mapping& mapping,
                                              PlannedModel& model) {
  if (own != nullptr) return own;
  if (auto found = model::find_graph(config, model.why_not)) return found;
  const auto heads = model::graph_heads();
  constexpr std::string_view kPreset = "preset:";
  for (const mapping::Document& document : mapping.documents()) {
    if (!document.is_preset || !document.name.starts_with(kPreset)) continue;
    const std::string name = document.name.substr(kPreset.size());
    const bool is_known = std::any_of(heads.begin(), heads.end(),
                                      [&](const auto& head) { return head.name == name; });
    if (!is_known) continue;
    auto graph = std::make_shared<const model::Graph>(
        model::decode_own_graph(model::graph_text(name), name));
    if (!graph->model_types.empty()) model.borrowed = model.why_not;
    model.why_not.clear();
    return graph;
  }
  return nullptr;
}

/// Gives codes the class of their weight, and its other parts and companions the class of scales.
void set_classes(const std::vector<model::PackedWeight>& packed, size_t stored,
                 PlannedModel& model) {
  for (const auto& [tensor, found] : model::tensor_classes(*model.bound)) {
    if (tensor < stored) {
      model.classes[tensor] = found;
      continue;
    }
    const model::PackedWeight& weight = packed[tensor - stored];
    for (const size_t part : weight.members()) model.classes[part] = TensorClass::kScales;
    model.classes[weight.codes] = found;
  }
}

/// Calls visit(layer, tensor) for every weight that an op reads, in the order of the layers.
template <class Visit>
void for_each_weight(const model::Model& bound, Visit visit) {
  for (size_t layer = 0; layer < bound.layers.size(); ++layer) {
    for (const model::BoundOp& op : bound.layers[layer].ops) {
      for (const model::BoundWeight& weight : op.weights) {
        for (const size_t tensor : weight) visit(layer, tensor);
      }
    }
  }
}

/// Gives the stored parts of a packed weight the layer of the weight.
void set_layers(const std::vector<model::PackedWeight>& packed, size_t stored,
                PlannedModel& model) {
  const auto set = [&model](size_t tensor, size_t layer) {
    if (!model.layers[tensor]) model.layers[tensor] = layer;
  };
  for_each_weight(*model.bound, [&](size_t layer, size_t tensor) {
    if (tensor < stored) return set(tensor, layer);
    const model::PackedWeight& weight = packed[tensor - stored];
    for (const size_t part : weight.members()) set(part, layer);
    set(weight.codes, layer);
  });
}

/// Returns the model's dtype as named in config.json; nullopt if it has none.
std::optional<std::string> dtype_name(const mapping::ModelConfig& config,
                                      const model::Model* bound) {
  for (const char* key : {"dtype", "torch_dtype"}) {
    if (auto name = config.text(key)) return name;
    if (bound == nullptr) continue;
    if (auto name = bound->config.text(key)) return name;
  }
  return std::nullopt;
}

}  // namespace

PlannedModel planned_model(const mapping::ModelConfig* config,
                           std::shared_ptr<const model::Graph> own, const AppliedMapping& applied,
                           model::Misfits misfits, const PlannedModel* alike) {
  PlannedModel model;
  model.placed = placed_tensors(applied);
  for (const mapping::ResolvedTensor& tensor : applied.resolution.tensors)
    model.classes.push_back(tensor.by->is_scale ? TensorClass::kScales : TensorClass::kOther);
  model.layers.resize(model.classes.size());
  if (config == nullptr) {
    model.why_not = "there is no config.json";
    return model;
  }
  auto graph = graph_for(*config, std::move(own), applied.mapping, model);
  if (graph == nullptr) return model;
  try {
    const size_t stored = model.placed.specs.size();
    const auto packed = add_unpacked(*config, model.placed);
    if (alike != nullptr && alike->bound != nullptr && alike->placed.specs == model.placed.specs) {
      model.bound = alike->bound;
      model.packed = alike->packed;
      model.classes = alike->classes;
      model.layers = alike->layers;
      return model;
    }
    model.bound = std::make_shared<const model::Model>(
        model::bind_model(std::move(graph), *config, model.placed.specs, misfits));
    model.packed = packed_reads(packed, model.placed.specs);
    set_classes(packed, stored, model);
    set_layers(packed, stored, model);
  } catch (const Error& error) {
    const auto why_not = why_not_this_model(error);
    if (!why_not) throw;
    model.bound.reset();
    model.why_not = *why_not;
  }
  return model;
}

std::vector<TensorSpec> trained_specs(const PlannedModel& model) {
  std::vector<TensorSpec> specs = model.placed.specs;
  for (TensorSpec& spec : specs) spec.dtype = Dtype::kBF16;
  return specs;
}

Dtype dtype_of_floats(const model::Model& bound, const std::vector<TensorSpec>& specs) {
  for (const model::Layer& layer : bound.layers) {
    for (const model::BoundOp& op : layer.ops) {
      for (const model::BoundWeight& weight : op.weights) {
        if (weight.empty()) continue;
        const Dtype dtype = specs[weight.front()].dtype;
        if (dtype == Dtype::kF32 || dtype == Dtype::kF16 || dtype == Dtype::kBF16) return dtype;
      }
    }
  }
  return Dtype::kBF16;
}

int own_bits(const mapping::ModelConfig* config, const model::Model* bound,
             const std::vector<TensorSpec>& specs) {
  constexpr int kUsualBits = 16;
  const auto name = config == nullptr ? std::nullopt : dtype_name(*config, bound);
  if (name) return dtype_bits(*name);
  return bound == nullptr ? kUsualBits : bits(dtype_of_floats(*bound, specs));
}

int cache_bits(const mapping::ModelConfig* config, const model::Model* bound,
               const std::vector<TensorSpec>& specs, const std::string& asked) {
  if (!asked.empty()) return dtype_bits(asked);
  const auto quantised = config == nullptr ? std::nullopt : quantised_cache_bits(*config);
  return quantised ? *quantised : own_bits(config, bound, specs);
}

}  // namespace shardtool::api
