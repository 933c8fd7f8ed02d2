#pragma once

#include "lib/model/bind.h"

namespace shardtool::model {

/// Returns true if the model's first attention outside of vision encoders is causal, or if it has
/// none.
bool is_causal(const Model& model);

}  // namespace shardtool::model
