#pragma once

#include <string>
#include <vector>

#include "lib/mapping/document/document.h"
#include "lib/mapping/document/json_value.h"

namespace shardtool::mapping {

/// One function per definition of schema/mapping-v1.json. All throw kMappingSchema or kUnknownName
/// with the place.

SizeExpression decode_size(const JsonValue& value);
MeshRef decode_mesh_ref(const JsonValue& value);
Uneven decode_uneven(const JsonValue& value);
layout::SmallPolicy decode_small(const JsonValue& value);
Glob decode_glob(const JsonValue& value);
std::vector<std::string> decode_texts(const JsonValue& value, size_t at_least);
/// One string or a list of them.
std::vector<JsonValue> decode_names(const JsonValue& value);

/// The dtypes of one name or a list of them.
std::vector<Dtype> decode_dtypes(const JsonValue& value);

AxisSpec decode_axis(const JsonValue& value);
StrategySpec decode_strategy(const JsonValue& value);
/// `position` is "rules/3", the label of a rule without an id; `sets` are what "where" may name.
Rule decode_rule(const JsonValue& value, const std::string& position, const LayerSets& sets);
CompanionSpec decode_companion(const JsonValue& value);

}  // namespace shardtool::mapping
