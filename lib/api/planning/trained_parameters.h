#pragma once

#include <map>
#include <vector>

#include "lib/api/planning/planned_model.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/mesh/axis_ref.h"
#include "lib/plan/training.h"

namespace shardtool::api {

/// Parameters of a device in training, by the number of devices of the mesh that have them for
/// other tokens: 1 for experts that are dealt over the groups with tokens of their own, the number
/// of these groups for all other weights.
using TrainedParameters = std::map<i64, i64>;

i64 sum_of(const TrainedParameters& parameters);

/// Bytes of a device's training state if each device of the mesh has `replicas` more like it:
/// plan::zero_state_bytes over all devices that have the same parameters.
i64 state_bytes(const TrainedParameters& parameters, int zero_stage, i64 replicas,
                plan::TrainingState state);

/// Returns the mesh axes along which devices have tokens of their own (model::token_axes); none for
/// a model that is not bound.
mesh::Over token_axes_of(const PlannedModel& model, const mapping::Resolution& resolution);

/// Parameters of a placed model.
struct PlacedParameters {
  std::vector<TrainedParameters> ranks;
  std::vector<TrainedParameters> layers;  ///< by layer, on the rank that has most of it
};

/// Counts the parameters of all tensors. A model that is not bound has no layers. Throws
/// kUnsupported for packed weights.
PlacedParameters count_parameters(const PlannedModel& model, const mapping::Resolution& resolution,
                                  const mesh::Over& token_axes);

}  // namespace shardtool::api
