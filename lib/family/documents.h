#pragma once

#include <string>
#include <string_view>

namespace shardtool::family {

/// The mapping document of a family, as shardtool-mapping(5) describes it: `preset:NAME`. Requires
/// a family with a mapping. Made at the first call; the text lives as long as the program.
const std::string& mapping_document(std::string_view family);

/// The graph document of a family, as shardtool-graph(5) describes it: `graph:NAME`. Requires a
/// family with ops. Made at the first call; the text lives as long as the program.
const std::string& graph_document(std::string_view family);

}  // namespace shardtool::family
