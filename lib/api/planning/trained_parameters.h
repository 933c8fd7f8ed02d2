#pragma once

#include <map>
#include <vector>

#include "lib/api/planning/planned_model.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/mesh/axis_ref.h"
#include "lib/plan/collective/collective.h"
#include "lib/plan/training.h"

namespace shardtool::api {

/// Parameters of a device in training, by the number of devices of the mesh that have them for
/// other tokens: 1 for experts that are dealt over the groups with tokens of their own, the number
/// of these groups for all other weights.
using TrainedParameters = std::map<i64, i64>;

i64 sum_of(const TrainedParameters& parameters);

/// Returns the mesh axes along which devices have tokens of their own (model::token_axes); none for
/// a model that is not bound.
mesh::Over token_axes_of(const PlannedModel& model, const mapping::Resolution& resolution);

/// Weights that layers on several pipeline stages read, such as tied embeddings. Every one of these
/// stages trains a copy, and they add up their gradients (Megatron-LM,
/// _allreduce_word_embedding_grads).
struct SharedWeights {
  std::vector<size_t> layers;  ///< the first layer of each stage that reads them
  mesh::Over over;             ///< mesh axes along which the stages differ
  i64 elements = 0;            ///< on a device
};

/// Parameters of a placed model.
struct PlacedParameters {
  std::vector<TrainedParameters> ranks;
  std::vector<TrainedParameters> layers;  ///< by layer, on the rank that has most of it
  /// By rank: those that it has and no layer of its stage reads, such as the embeddings on a middle
  /// stage. It has the weights alone, neither gradients nor optimizer state.
  std::vector<TrainedParameters> unused;
  std::vector<SharedWeights> shared;
};

/// Counts the parameters of all tensors. A device trains those that its layers read, of an end of
/// the model on the stage that runs it (model::running_devices), and those that no op reads. A
/// model that is not bound has no layers, and all its parameters are trained. Throws kUnsupported
/// for packed weights.
PlacedParameters count_parameters(const PlannedModel& model, const mapping::Resolution& resolution,
                                  const mesh::Over& token_axes);

/// Bytes of a device's training state if each device of the mesh has `replicas` more like it:
/// plan::zero_state_bytes over all devices that have the same parameters.
i64 state_bytes(const PlacedParameters& parameters, i64 rank, int zero_stage, i64 replicas,
                plan::TrainingState state);

/// Returns the all_reduce of the gradients of weights that several stages have, of so many bytes
/// each. The mesh has all axes of the parameters' mesh.
plan::Collective gradient_sum(const SharedWeights& weights, const mesh::Mesh& mesh, i64 domain,
                              i64 gradient_bytes);

}  // namespace shardtool::api
