#pragma once

#include <vector>

#include "lib/mapping/document/json_value.h"
#include "lib/ops/schema.h"

/// Decoders of the values in ops of a graph file. All throw kMappingSchema with the value's place.
namespace shardtool::ops {

using mapping::decode_layer_set;
using mapping::decode_number;
using mapping::decode_paths;

Dim decode_dim(const mapping::JsonValue& value);
std::vector<Dim> decode_dims(const mapping::JsonValue& value);
Word decode_word(const mapping::JsonValue& value);

}  // namespace shardtool::ops
