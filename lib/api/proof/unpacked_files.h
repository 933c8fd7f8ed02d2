#pragma once

#include "lib/api/proof/bound_side.h"
#include "lib/mapping/document/config.h"

namespace shardtool::api {

/// Appends the weights that the config declares packed after the stored tensors; each has the
/// layout of its codes. Throws the errors of model::packed_weights.
SideFiles with_unpacked_weights(SideFiles files, const mapping::ModelConfig& config);

}  // namespace shardtool::api
