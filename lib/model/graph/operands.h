#pragma once

#include <string_view>

#include "lib/mapping/document/json_value.h"
#include "lib/model/graph/ops.h"

namespace shardtool::model {

/// Throws kMappingSchema where an op of this name has not as many inputs and outputs as it reads
/// and makes.
void check_operands(std::string_view name, const Op& op, const mapping::JsonValue& value);

}  // namespace shardtool::model
