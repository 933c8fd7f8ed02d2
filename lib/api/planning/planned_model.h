#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/transfer/placed_tensors.h"
#include "lib/mapping/document/config.h"
#include "lib/model/memory_facts.h"
#include "lib/ops/pricing.h"

namespace shardtool::api {

/// A model for a memory report: the tensors that a mapping places, bound to a graph.
struct PlannedModel {
  /// The resolution's tensors in order, then unpacked weights, which are not stored.
  PlacedTensors placed;
  std::vector<model::TensorClass> classes;  ///< by tensor of the resolution
  /// By tensor of the resolution: the first layer that reads it, an index into bound->layers;
  /// nullopt if no op reads it.
  std::vector<std::optional<size_t>> layers;
  std::shared_ptr<const model::Model> bound;  ///< null: see why_not
  std::map<size_t, ops::WeightRead> packed;   ///< cost of reading the unpacked weights
  std::string why_not;                        ///< why `bound` is not set; else empty
  std::string borrowed;                       ///< why another family's graph is used; else empty

  model::LayoutOf layouts() const { return placed.computed_layouts(); }
};

/// Binds a model to `own`; if that is null, to the graph of the config's model type, or else of the
/// mapping's nearest preset that has one. `config` may be null. With kLeaveOut, tensors that do not
/// fit the graph are skipped, so the others still count; a pass has a price only with kRefuse.
/// `alike` is this model, bound alike, under another mesh, if there is one already: where its
/// tensors are the same, its bound model is taken.
PlannedModel planned_model(const mapping::ModelConfig* config,
                           std::shared_ptr<const model::Graph> own, const AppliedMapping& applied,
                           model::Misfits misfits = model::Misfits::kLeaveOut,
                           const PlannedModel* alike = nullptr);

/// Returns the model's tensors with the 16 bits that training keeps of a weight or a gradient.
std::vector<TensorSpec> trained_specs(const PlannedModel& model);

/// Returns the type of the first F32, F16 or BF16 weights that a model reads; BF16 if it has none.
Dtype dtype_of_floats(const model::Model& bound, const std::vector<TensorSpec>& specs);

/// Returns the bits of an element of the model's own type: that of config.json, else that of its
/// first float weights, mostly the embedding; 16 if neither is known. `config` and `bound` may be
/// null; `specs` are those that `bound` is bound to.
int own_bits(const mapping::ModelConfig* config, const model::Model* bound,
             const std::vector<TensorSpec>& specs);

/// Returns the bits of a cached element: of the dtype asked for, else of the quantisation of
/// config.json, else own_bits. Throws kUsage for an unknown dtype, and what quantised_cache_bits
/// throws.
int cache_bits(const mapping::ModelConfig* config, const model::Model* bound,
               const std::vector<TensorSpec>& specs, const std::string& asked);

}  // namespace shardtool::api
