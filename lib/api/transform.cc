#include "shardtool/api/transform.h"

#include "shardtool/api/transfer.h"

namespace shardtool::api {

TransformReport split(const SplitOptions& options) {
  return reshard({{options.source}, options.mapping, options.ranks, true, options.write});
}

TransformReport merge(const MergeOptions& options) {
  const auto open_task = [&] {
    Task task{open_logical(options.sources), {}};
    task.target = whole_target(task.source);
    return task;
  };
  return transfer(open_task, options.write, options.compare_replicas);
}

TransformReport reshard(const ReshardOptions& options) {
  const auto open_task = [&] {
    Task task{open_logical(options.sources), {}};
    const AppliedMapping applied = apply_mapping(options.to, task.source);
    task.target = sharded_target(task.source, applied, options.ranks);
    return task;
  };
  return transfer(open_task, options.write, options.compare_replicas);
}

}  // namespace shardtool::api
