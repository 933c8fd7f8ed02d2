#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/mapping/document/config.h"
#include "lib/model/graph/graph.h"

namespace shardtool::model {

/// The families that have a graph, sorted. Parts of models alone, which graphs extend, are none.
std::vector<std::string> families();

/// The header of a document. A part of models has no model types.
struct GraphHead {
  std::string name;
  std::string description;
  std::vector<std::string> model_types;
  std::vector<std::string> extends;
};
/// The headers of all built-in documents, sorted by name.
std::vector<GraphHead> graph_heads();
/// The text of one. Throws kUnknownName with near misses.
std::string_view graph_text(std::string_view name);

/// One of the families, with what it extends. Throws kUnknownName with near misses.
Graph load_graph(std::string_view family);

/// A graph of one's own: `text`, with the documents that it extends, which are built in. `file` is
/// where its errors are. Throws kMappingSyntax, kMappingSchema and kUnknownName.
Graph decode_own_graph(std::string_view text, const std::string& file);

/// `own`, or where that is null the graph of the config's model_type. Null where no family has it,
/// or where the config asks for something that the graph does not compute, with the reason in
/// `why_not`.
std::shared_ptr<const Graph> find_graph(const mapping::ModelConfig& config,
                                        std::shared_ptr<const Graph> own, std::string& why_not);
inline std::shared_ptr<const Graph> find_graph(const mapping::ModelConfig& config,
                                               std::string& why_not) {
  return find_graph(config, nullptr, why_not);
}

}  // namespace shardtool::model
