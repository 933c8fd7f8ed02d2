#include "lib/api/catalogue/graphs.h"

#include "lib/model/graph/graph_list.h"
#include "lib/store/local/file.h"

namespace shardtool::api {
namespace {

/// About a hundred times the largest built-in graph.
constexpr i64 kMaxGraphBytes = 4 << 20;

}  // namespace

std::vector<model::GraphHead> list_graphs() {
  return model::graph_heads();
}

std::string graph_text(const std::string& name) {
  return std::string(model::graph_text(name));
}

std::shared_ptr<const model::Graph> read_graph(const std::string& path) {
  return std::make_shared<const model::Graph>(
      model::decode_own_graph(store::read_text(path, kMaxGraphBytes), path));
}

}  // namespace shardtool::api
