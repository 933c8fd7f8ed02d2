#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lib/api/transfer/sources/logical_checkpoint.h"

namespace shardtool::model {
struct Graph;
}

namespace shardtool::api {

/// Shows the tensors that a model's graph requires by config.json, where that stands alone
/// (format::config_without_weights); nullopt for other locations. `config` is the path of another
/// config.json, or empty; `own` is a user's graph, or null for the family's.
///
/// Throws kUnsupported for quantised weights and a model without a graph, kConfig for a config.json
/// without the type of the weights, and the errors of model::config_tensors.
std::optional<LogicalCheckpoint> open_config_alone(const std::string& location,
                                                   const std::string& config,
                                                   std::shared_ptr<const model::Graph> own);

}  // namespace shardtool::api
