#pragma once

#include <map>
#include <string>

#include "lib/mapping/document/json_value.h"
#include "lib/model/graph/graph.h"

namespace shardtool::model {

/// What ops of one family refer to by name.
struct OpContext {
  std::map<std::string, std::string> prefixes;  ///< of "layer/..." and "root/..."
  std::map<std::string, Number> numbers;
  std::map<std::string, LayerSet> layer_sets;
};

/// One op. Throws kMappingSchema with its place.
Op decode_op(const mapping::JsonValue& value, const OpContext& context);

}  // namespace shardtool::model
