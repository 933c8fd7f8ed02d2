#include "lib/model/tensor_finder.h"

#include "lib/model/graph/layer_number.h"

namespace shardtool::model {

TensorFinder::TensorFinder(const Graph& graph, const mapping::ModelConfig& config,
                           std::span<const TensorSpec> tensors)
    : graph_(graph), config_(config), tensors_(tensors) {
  by_name_.reserve(tensors.size());
  for (size_t t = 0; t < tensors.size(); ++t) by_name_.emplace(tensors[t].name, t);
}

std::optional<size_t> TensorFinder::find(const ops::WeightRef& ref, i64 layer, i64 number) {
  for (const std::string& glob : ref.names) {
    if (const auto found = find(glob, layer, number)) return found;
  }
  return std::nullopt;
}

std::optional<size_t> TensorFinder::find(const std::string& glob, i64 layer, i64 number) {
  const ops::Spelling& texts = spelling(glob);
  const auto numbers = number_of(layer, number);
  for (size_t choice = 0; choice < texts.count(); ++choice) {
    const auto found = by_name_.find(texts.text(choice, numbers));
    if (found != by_name_.end()) return found->second;
  }
  return std::nullopt;
}

std::string TensorFinder::first_name(const std::string& glob, i64 layer, i64 number) {
  return spelling(glob).text(0, number_of(layer, number));
}

std::vector<std::string> TensorFinder::names(const std::string& glob, i64 layer, i64 number) {
  const ops::Spelling& texts = spelling(glob);
  const auto numbers = number_of(layer, number);
  std::vector<std::string> names;
  for (size_t choice = 0; choice < texts.count(); ++choice)
    names.push_back(texts.text(choice, numbers));
  return names;
}

std::string TensorFinder::likeliest(const std::string& glob, i64 layer, i64 number) {
  return spelling(glob).likeliest(number_of(layer, number), tensors_);
}

const ops::Spelling& TensorFinder::spelling(const std::string& glob) {
  return spellings_.try_emplace(&glob, glob).first->second;
}

/// The number that replaces a placeholder: the layer's, one of the graph's layer numbers, or else
/// `number`.
ops::Spelling::NumberOf TensorFinder::number_of(i64 layer, i64 number) const {
  return [this, layer, number](const std::string& name) {
    if (name == "layer") return layer;
    const auto found = graph_.layer_numbers.find(name);
    return found == graph_.layer_numbers.end() ? number : value_at(found->second, config_, layer);
  };
}

}  // namespace shardtool::model
