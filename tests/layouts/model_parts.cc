#include "tests/layouts/model_parts.h"

#include <utility>

#include "lib/api/transfer/transfer.h"

namespace shardtool::test {

std::vector<std::string> write_parts(api::LogicalCheckpoint found, const std::string& output) {
  api::Task task{std::move(found), {}};
  task.target = api::whole_target(task.source, nullptr);
  api::WriteOptions write;
  write.output = output;
  write.force = true;
  return api::transfer(std::move(task), write, true).warnings;
}

}  // namespace shardtool::test
