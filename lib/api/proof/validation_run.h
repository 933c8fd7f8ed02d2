#pragma once

#include <string>

#include "lib/api/proof/validate_inputs.h"
#include "lib/api/validate.h"
#include "lib/model/bind.h"

namespace shardtool::api {

/// Returns a hash of all that decides the results of a validation: the files of both sides, the
/// shards' layout, the graph, and the options. It is the same for all shares of one validation.
std::string validation_run(const ValidateInputs& inputs, const ValidateOptions& options,
                           const model::Model& shards);

}  // namespace shardtool::api
