#pragma once

#include <string>
#include <string_view>

#include "lib/mapping/document/config.h"
#include "lib/model/graph/graph.h"

namespace shardtool::model {

/// The object at `path` as a config of its own, which has all of the config as "whole"; where there
/// is no object, all of the config stands for it. An empty path is the config as it is.
mapping::ModelConfig part_of(const mapping::ModelConfig& config, std::string_view path);

/// The first requirement that the config does not meet; null where it meets all.
const Requirements::value_type* first_unmet(const Requirements& requirements,
                                            const mapping::ModelConfig& config);

}  // namespace shardtool::model
