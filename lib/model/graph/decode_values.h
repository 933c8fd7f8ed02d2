#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/mapping/document/json_value.h"
#include "lib/model/graph/graph.h"

/// The values that ops are written with. All throw kMappingSchema with the value's place.
namespace shardtool::model {

using mapping::decode_allowed;
using mapping::decode_layer_set;
using mapping::decode_number;
using mapping::decode_paths;
using mapping::LayerSets;

Dim decode_dim(const mapping::JsonValue& value);
std::vector<Dim> decode_dims(const mapping::JsonValue& value);
Word decode_word(const mapping::JsonValue& value);
/// {path: [what config.json may say]}.
Requirements decode_requirements(const mapping::JsonValue& value);

}  // namespace shardtool::model
