#include "lib/model/config_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "lib/base/error.h"
#include "lib/model/bind.h"
#include "lib/model/graph/requirement.h"
#include "lib/model/tensor_finder.h"
#include "lib/model/variants.h"

namespace shardtool::model {
namespace {

constexpr size_t kMostTensors = size_t{1} << 19;

/// Returns the weights of an op; of experts those of the first form.
const std::vector<WeightRef>& weights_of(const Op& op) {
  const auto* experts = std::get_if<Experts>(&op.kind);
  return experts == nullptr ? op.weights : experts->forms.front().weights;
}

using RequiredNames = std::set<std::vector<std::string>>;

/// Returns the names of the weights that a way requires.
RequiredNames names_of(const Way& way) {
  RequiredNames names;
  for (const Op& op : way.ops) {
    for (const WeightRef& ref : weights_of(op)) {
      if (!ref.optional) names.insert(ref.names);
    }
  }
  return names;
}

/// Walks through a graph as bind_model does, without tensors.
class ConfigTensors {
 public:
  ConfigTensors(const Graph& graph, const mapping::ModelConfig& config, Dtype dtype)
      : graph_(graph),
        sizes_(sizes_of(graph, config)),
        may_have_own_head_(own_head(config) != OwnHead::kNo),
        dtype_(dtype),
        finder_(graph, sizes_.config, {}) {}

  void add(const Stack& stack);
  void add(const std::vector<Alternatives>& stretches, const std::string& block, i64 layer);
  std::vector<TensorSpec> take() && { return std::move(specs_); }

 private:
  bool is_described(const Stack& stack) const;
  bool is_expected(const std::optional<Expected>& expected, i64 layer) const;
  bool has_sizes(const Way& way) const;
  bool has_sizes(const Block& block, i64 layer) const;
  bool is_possible(const Way& way, i64 layer) const;
  const Way& chosen(const Alternatives& ways, const std::string& block, i64 layer) const;
  const Block& chosen(const std::vector<Block>& blocks, i64 layer) const;
  bool is_read(const Op& op, const WeightRef& ref, i64 layer);
  void add(const Op& op, i64 layer);
  void add(const WeightRef& ref, i64 layer, i64 count);
  Error undecided(const std::string& block, i64 layer) const;

  const Graph& graph_;
  ops::ModelSizes sizes_;
  bool may_have_own_head_;
  Dtype dtype_;
  TensorFinder finder_;         // refers to sizes_
  std::set<std::string> made_;  ///< values made so far, in any layer
  std::set<std::string> names_;
  std::vector<TensorSpec> specs_;
};

Error ConfigTensors::undecided(const std::string& block, i64 layer) const {
  Error error(ErrorCode::kUnsupported, "config.json alone does not say which weights a layer has");
  error.note("layer", layer < 0 ? block : fmt::format("{} {}", block, layer));
  error.note("graph", graph_.family);
  return error.help("give the folder with the weights, whose headers say it");
}

/// True if config.json has the object that says how many layers the stack has.
bool ConfigTensors::is_described(const Stack& stack) const {
  return std::ranges::any_of(config_keys(graph_, stack.layers), [&](const std::string& key) {
    const size_t dot = key.rfind('.');
    const auto* part = dot == key.npos ? nullptr : sizes_.config.find(key.substr(0, dot));
    return part != nullptr && part->is_object();
  });
}

bool ConfigTensors::is_expected(const std::optional<Expected>& expected, i64 layer) const {
  if (!expected) return true;
  if (first_unmet(expected->requires_config, sizes_.config) != nullptr) return false;
  const std::vector<Dim>& unequal = expected->unequal;
  if (!unequal.empty() && sizes_.size(unequal.front()) == sizes_.size(unequal.back())) return false;
  return std::ranges::all_of(
      expected->layers, [&](const LayerSet& set) { return contains(set, sizes_.config, layer); });
}

/// True if config.json gives the sizes of all weights that the way requires.
bool ConfigTensors::has_sizes(const Way& way) const {
  const auto is_known = [&](const mapping::Factor& factor) {
    return factor.axis.empty() || sizes_.sizes.contains(factor.axis);
  };
  const auto has_all = [&](const WeightRef& ref) {
    return ref.optional || std::ranges::all_of(ref.shape, [&](const Dim& dim) {
             return std::ranges::all_of(dim.sections, [&](const mapping::FoldedAxes& section) {
               return std::ranges::all_of(section.factors, is_known);
             });
           });
  };
  return std::ranges::all_of(
      way.ops, [&](const Op& op) { return std::ranges::all_of(weights_of(op), has_all); });
}

bool ConfigTensors::has_sizes(const Block& block, i64 layer) const {
  return std::ranges::all_of(block.stretches, [&](const Alternatives& ways) {
    return std::ranges::any_of(ways, [&](const Way& way) {
      return is_allowed(way, sizes_.config, layer) && has_sizes(way);
    });
  });
}

bool ConfigTensors::is_possible(const Way& way, i64 layer) const {
  return is_allowed(way, sizes_.config, layer) && (!way.where_made || has_inputs(way, made_)) &&
         has_sizes(way) && is_expected(way.expected, layer);
}

/// Returns the first possible way. Throws kUnsupported if only tensors tell it from the next one.
const Way& ConfigTensors::chosen(const Alternatives& ways, const std::string& block,
                                 i64 layer) const {
  if (ways.size() == 1) return ways.front();
  const Way* first = nullptr;
  for (const Way& way : ways) {
    if (!is_possible(way, layer)) continue;
    const bool is_decided =
        way.layers || way.expected || way.where_made || !way.requires_config.empty();
    if (first == nullptr && is_decided) return way;
    if (first != nullptr && names_of(*first) != names_of(way)) throw undecided(block, layer);
    if (first != nullptr) return *first;
    first = &way;
  }
  if (first == nullptr) throw undecided(block, layer);
  return *first;
}

/// The same for blocks.
const Block& ConfigTensors::chosen(const std::vector<Block>& blocks, i64 layer) const {
  if (blocks.size() == 1) return blocks.front();
  const Block* first = nullptr;
  for (const Block& block : blocks) {
    if (!has_sizes(block, layer) || !is_expected(block.expected, layer)) continue;
    if (first != nullptr) throw undecided(block.name, layer);
    first = &block;
    if (block.expected) break;
  }
  if (first == nullptr) throw undecided(blocks.back().name, layer);
  return *first;
}

/// True if an earlier op reads the weight by another of its names.
bool ConfigTensors::is_read(const Op& op, const WeightRef& ref, i64 layer) {
  if (ref.names.size() == 1 || (op.is_head && may_have_own_head_)) return false;
  return std::ranges::any_of(ref.names, [&](const std::string& glob) {
    return names_.contains(finder_.first_name(glob, layer, 0));
  });
}

void ConfigTensors::add(const WeightRef& ref, i64 layer, i64 count) {
  Shape shape;
  for (const Dim& dim : ref.shape) shape.push_back(sizes_.size(dim));
  if (shape.empty()) shape.push_back(1);  // one number
  for (i64 number = 0; number < count; ++number) {
    const std::string name = finder_.first_name(ref.names.front(), layer, number);
    if (names_.insert(name).second) specs_.push_back({name, dtype_, shape});
  }
  if (specs_.size() <= kMostTensors) return;
  throw Error(ErrorCode::kLimit,
              fmt::format("config.json describes a model of more than {} tensors", kMostTensors))
      .note("graph", graph_.family)
      .help("correct the numbers of layers and experts in config.json");
}

void ConfigTensors::add(const Op& op, i64 layer) {
  const auto* experts = std::get_if<Experts>(&op.kind);
  const bool is_per_expert = experts != nullptr && experts->forms.front().per_expert;
  const i64 of_each = is_per_expert ? count_of(sizes_, experts->experts, "experts") : 1;
  for (const WeightRef& ref : weights_of(op)) {
    if (ref.optional || is_read(op, ref, layer)) continue;
    add(ref, layer, ref.heads ? count_of(sizes_, *ref.heads, "heads") : of_each);
  }
}

void ConfigTensors::add(const std::vector<Alternatives>& stretches, const std::string& block,
                        i64 layer) {
  for (const Alternatives& ways : stretches) {
    for (const Op& op : chosen(ways, block, layer).ops) {
      add(op, layer);
      made_.insert(op.out.begin(), op.out.end());
    }
  }
}

void ConfigTensors::add(const Stack& stack) {
  if (stack.is_vision_encoder && !is_described(stack)) return;
  add(stack.start, stack.name.empty() ? "start" : stack.name, -1);
  const i64 layers = count_of(sizes_, stack.layers, "layers");
  for (i64 layer = 0; layer < layers; ++layer) {
    const Block& block = chosen(stack.blocks, layer);
    add(block.stretches, block.name, layer);
  }
  if (stack.end) add(stack.end->stretches, stack.end->name, -1);
}

/// Returns the shape of a weight; nullopt if config.json does not give all of its sizes.
std::optional<Shape> shape_of(const WeightRef& ref, const ops::ModelSizes& sizes) {
  Shape shape;
  try {
    for (const Dim& dim : ref.shape) shape.push_back(sizes.size(dim));
  } catch (const Error&) {
    return std::nullopt;
  }
  return shape.empty() ? std::nullopt : std::optional(std::move(shape));
}

}  // namespace

std::vector<TensorSpec> config_tensors(const Graph& graph, const mapping::ModelConfig& config,
                                       Dtype dtype) {
  ConfigTensors tensors(graph, config, dtype);
  for (const Stack& stack : graph.stacks) tensors.add(stack);
  tensors.add(graph.end, "end", -1);
  return std::move(tensors).take();
}

std::vector<std::optional<Shape>> config_shapes(const std::shared_ptr<const Graph>& graph,
                                                const mapping::ModelConfig& config,
                                                std::span<const std::string> names) {
  std::vector<TensorSpec> specs;
  for (const std::string& name : names) specs.push_back({name, Dtype::kF32, {}});
  const Model model = bind_model(graph, config, specs, Misfits::kLeaveOut);
  std::vector<std::optional<Shape>> shapes(names.size());
  for (const Layer& layer : model.layers) {
    for (const BoundOp& op : layer.ops) {
      const std::vector<WeightRef>& refs = ops::refs_of(op);
      for (size_t w = 0; w < op.weights.size(); ++w) {
        for (const size_t tensor : op.weights[w]) {
          if (!shapes[tensor]) shapes[tensor] = shape_of(refs[w], model);
        }
      }
    }
  }
  return shapes;
}

}  // namespace shardtool::model
