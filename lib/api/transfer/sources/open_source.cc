#include "lib/api/transfer/sources/open_source.h"

#include "lib/api/transfer/sources/whole_model.h"

namespace shardtool::api {

LogicalCheckpoint open_logical(const std::vector<std::string>& locations, const Opening& opening) {
  if (const auto source = named_layout(locations, opening.config)) {
    return open_model_in_layout(*source);
  }
  LogicalCheckpoint opened = open_stored(locations);
  if (!opening.takes_files_of_ranks) refuse_files_of_ranks(opened);
  return opened;
}

LogicalCheckpoint open_finished(const std::vector<std::string>& locations, const Opening& opening) {
  LogicalCheckpoint opened = open_logical(locations, opening);
  require_digests(opened);
  return opened;
}

}  // namespace shardtool::api
