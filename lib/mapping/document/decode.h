#pragma once

#include <map>
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
/// Decodes one glob or a list of globs.
std::vector<Glob> decode_globs(const JsonValue& value);
std::vector<std::string> decode_texts(const JsonValue& value, size_t at_least);
/// Decodes one string or a list of strings.
std::vector<JsonValue> decode_names(const JsonValue& value);

/// Decodes one dtype name or a list of them.
std::vector<Dtype> decode_dtypes(const JsonValue& value);

AxisSpec decode_axis(const JsonValue& value);
StrategySpec decode_strategy(const JsonValue& value);
/// `position`, such as "rules/3", is the label of a rule without an id. `sets` are the layer sets
/// that "where" may name.
Rule decode_rule(const JsonValue& value, const std::string& position, const LayerSets& sets);
CompanionSpec decode_companion(const JsonValue& value);
StoreRule decode_store_rule(const JsonValue& value);
ReadRule decode_read_rule(const JsonValue& value);
/// Decodes a glob, or an object with "match" and "where".
DropRule decode_drop(const JsonValue& value, const LayerSets& sets);
/// Decodes an object from captured numbers to sets of layers.
std::map<std::string, LayerSet> decode_where(const JsonValue& value, const LayerSets& sets);
/// Decodes an object from paths of config.json to lists of values.
std::vector<ConfigCondition> decode_conditions(const JsonValue& value);

}  // namespace shardtool::mapping
