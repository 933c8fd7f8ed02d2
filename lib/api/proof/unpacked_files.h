#pragma once

#include "lib/api/proof/bound_side.h"
#include "lib/mapping/document/config.h"

namespace shardtool::api {

/// The same with the weights that the config says are packed behind the tensors that they are made
/// of: each lies as its codes do. Throws what model::packed_weights throws.
SideFiles with_unpacked_weights(SideFiles files, const mapping::ModelConfig& config);

}  // namespace shardtool::api
