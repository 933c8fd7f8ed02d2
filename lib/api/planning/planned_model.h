#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/transfer/placed_tensors.h"
#include "lib/mapping/document/config.h"
#include "lib/model/memory_facts.h"

namespace shardtool::api {

/// A model as a memory report reads it: the tensors that a mapping places, bound to a graph.
struct PlannedModel {
  PlacedTensors placed;  ///< those of the resolution in their order, then unpacked weights
  std::vector<std::shared_ptr<const layout::Layout>> unpacked;  ///< layouts of unpacked weights
  std::vector<model::TensorClass> classes;                      ///< of the resolution's tensors
  std::optional<model::Model> bound;
  std::string why_not;   ///< why there is no `bound`; else empty
  std::string borrowed;  ///< why `bound` is by another family's graph; else empty

  model::LayoutOf layouts() const {
    return [this](size_t tensor) -> const layout::Layout& { return *placed.layouts[tensor]; };
  }
};

/// Binds `own`, or where that is null the graph of the config's model type, or else of the nearest
/// preset of the mapping that has one. Tensors that the graph does not know are left out, so that
/// every other number stays. `config` may be null.
PlannedModel planned_model(const mapping::ModelConfig* config,
                           std::shared_ptr<const model::Graph> own, const AppliedMapping& applied);

/// The model's own dtype as config.json names it; absent where it does not say.
std::optional<std::string> dtype_name(const mapping::ModelConfig& config,
                                      const PlannedModel& model);

}  // namespace shardtool::api
