#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/model/graph/graph_head.h"

namespace shardtool::model {
struct Graph;
}

namespace shardtool::api {

/// Returns the built-in graphs sorted by name; graphs without model types are parts of others.
std::vector<model::GraphHead> list_graphs();
/// Returns a graph's JSON text. Throws kUsage with suggestions.
std::string graph_text(const std::string& name);

/// Reads a user's graph from a file. Throws the errors of store::read_text and
/// model::decode_own_graph.
std::shared_ptr<const model::Graph> read_graph(const std::string& path);

}  // namespace shardtool::api
