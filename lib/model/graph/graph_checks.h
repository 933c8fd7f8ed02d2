#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "lib/mapping/document/json_value.h"
#include "lib/model/graph/graph.h"

namespace shardtool::model {

/// Throws kMappingSchema for a value that an op reads before another op makes it. The first stack's
/// start has no inputs; all other parts may read "x" and the passed values.
void check_values(const Graph& graph);

/// Adds every word of the texts in a value: "layer/q.weight" has layer, q and weight.
void add_words(const mapping::JsonValue& value, std::set<std::string>& words);

/// Throws kMappingSchema for an entry of `file` whose name is not among those that are used. `kind`
/// is the word for an entry in messages.
void refuse_unused(std::string_view kind, const std::map<std::string, mapping::JsonValue>& entries,
                   const std::set<std::string>& used, const std::string& file);

}  // namespace shardtool::model
