#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/model/graph/graph_list.h"

namespace shardtool::api {

/// The graphs that are built in, sorted by name; those without model types are parts of others.
std::vector<model::GraphHead> list_graphs();
/// One's JSON text. Throws kUnknownName with near misses.
std::string graph_text(const std::string& name);

/// A graph of one's own, from a file. Throws what io::read_text and model::decode_own_graph throw.
std::shared_ptr<const model::Graph> read_graph(const std::string& path);

}  // namespace shardtool::api
