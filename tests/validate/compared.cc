#include "tests/validate/compared.h"

#include "lib/api/transfer/sources/open_source.h"
#include "lib/model/graph/graph_list.h"

namespace shardtool::test {

Compared::Compared(const std::string& model, const std::string& parts)
    : whole_files_(api::open_logical({model})),
      shards_files_(api::open_logical({parts})),
      config_(*whole_files_.config()) {
  std::string why;
  const auto graph = model::find_graph(config_, why);
  whole_ = std::make_unique<api::BoundSide>(graph, config_, api::whole_files(whole_files_));
  shards_ = std::make_unique<api::BoundSide>(graph, config_, api::shard_files(shards_files_, {}));
}

}  // namespace shardtool::test
