#pragma once

#include <string>
#include <string_view>

#include "lib/mapping/document/config.h"
#include "lib/model/graph/graph.h"

namespace shardtool::model {

/// Returns the object at `path` as a config, which has the whole config as "whole". Returns the
/// config itself if `path` is empty or no object is there.
mapping::ModelConfig part_of(const mapping::ModelConfig& config, std::string_view path);

/// Returns the first requirement that the config does not meet, or null.
const Requirements::value_type* first_unmet(const Requirements& requirements,
                                            const mapping::ModelConfig& config);

}  // namespace shardtool::model
