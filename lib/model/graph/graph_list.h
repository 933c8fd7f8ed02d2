#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/mapping/document/config.h"
#include "lib/model/graph/graph.h"
#include "lib/model/graph/graph_head.h"

namespace shardtool::model {

/// Returns the families that have a graph, sorted. Documents that graphs only extend are not
/// included.
std::vector<std::string> families();

/// The headers of all built-in documents, sorted by name.
std::vector<GraphHead> graph_heads();
/// Returns the text of a built-in document. Throws kUsage with similar names.
std::string_view graph_text(std::string_view name);

/// Decodes a built-in graph and what it extends. Throws kUnknownName with similar names.
Graph load_graph(std::string_view family);

/// Decodes a user's graph and the built-in documents that it extends. Errors name `file`. Throws
/// kMappingSyntax, kMappingSchema and kUnknownName.
Graph decode_own_graph(std::string_view text, const std::string& file);

/// Returns `own`, or if that is null the graph for the config's model_type. Returns null, with the
/// reason in `why_not`, if no family has that model_type or if the graph does not compute something
/// that the config requires.
std::shared_ptr<const Graph> find_graph(const mapping::ModelConfig& config,
                                        std::shared_ptr<const Graph> own, std::string& why_not);
inline std::shared_ptr<const Graph> find_graph(const mapping::ModelConfig& config,
                                               std::string& why_not) {
  return find_graph(config, nullptr, why_not);
}

}  // namespace shardtool::model
