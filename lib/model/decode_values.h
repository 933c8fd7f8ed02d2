#pragma once

#include <map>
#include <string>
#include <vector>

#include "shardtool/mapping/json_value.h"
#include "shardtool/model/graph.h"

/// The values that ops are written with. All throw kMappingSchema with the value's place.
namespace shardtool::model {

using LayerSets = std::map<std::string, LayerSet>;

Dim decode_dim(const mapping::JsonValue& value);
std::vector<Dim> decode_dims(const mapping::JsonValue& value);
/// One string, or a list of them.
std::vector<std::string> decode_paths(const mapping::JsonValue& value);
Word decode_word(const mapping::JsonValue& value);
/// A number, {"config": path, "default": number}, or the name of one.
Number decode_number(const mapping::JsonValue& value, const std::map<std::string, Number>& named);
/// {path: [what config.json may say]}.
Requirements decode_requirements(const mapping::JsonValue& value);
std::vector<std::string> decode_allowed(const mapping::JsonValue& value);
/// The name of a set, or {"list", "in", "out", "all_but_every"}.
LayerSet decode_layer_set(const mapping::JsonValue& value, const LayerSets& named,
                          const std::map<std::string, Number>& numbers);

}  // namespace shardtool::model
