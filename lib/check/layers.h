#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "lib/check/model.h"
#include "lib/model/bind.h"

namespace shardtool::check {

/// Tensors of every layer, by the name after the layer's number.
using Layers = std::map<i64, std::set<std::string_view>>;

/// Layers whose tensors' names begin alike. Refers to the names.
struct NumberedLayers {
  std::string_view prefix;  ///< "model.layers."
  Layers layers;
};

/// Splits "model.layers.12.mlp.up_proj.weight" at "model.layers." into 12 and "mlp.up_proj.weight".
std::optional<std::pair<i64, std::string_view>> numbered(std::string_view name,
                                                         std::string_view prefix);

/// Returns the layers that config.json counts: those of the language model.
NumberedLayers counted_layers(const CheckedModel& model);

/// ST0407: reports tensors that a layer lacks and others of its kind have, except those that are
/// `known` to be missing. `counted` are the layers that config.json counts; `bound` is the model
/// with its graph, or null.
void check_layers_alike(const CheckedModel& model, const NumberedLayers& counted,
                        const model::Model* bound, std::set<std::string> known, Findings& findings);

}  // namespace shardtool::check
