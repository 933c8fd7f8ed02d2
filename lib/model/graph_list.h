#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shardtool/mapping/config.h"
#include "shardtool/model/graph.h"

namespace shardtool::model {

/// The families that have a graph, sorted. Parts of models alone, which graphs extend, are none.
std::vector<std::string> families();

/// One of them, with what it extends. Throws kUnknownName with near misses.
Graph load_graph(std::string_view family);

/// The graph of a config's model_type; null where no family has it, or where the config asks for
/// something that the family's graph does not compute, with the reason in `why_not`.
std::shared_ptr<const Graph> find_graph(const mapping::ModelConfig& config, std::string& why_not);

}  // namespace shardtool::model
