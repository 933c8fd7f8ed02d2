#include "shardtool/api/transform.h"

#include "shardtool/api/transfer.h"

namespace shardtool::api {

TransformReport split(const SplitOptions& options) {
  return reshard({{options.source}, options.mapping, options.ranks, true, options.write});
}

TransformReport merge(const MergeOptions& options) {
  const LogicalCheckpoint source = open_logical(options.sources);
  return transfer(source, whole_target(source), options.write, options.compare_replicas);
}

TransformReport reshard(const ReshardOptions& options) {
  const LogicalCheckpoint source = open_logical(options.sources);
  const AppliedMapping applied = apply_mapping(options.to, source);
  return transfer(source, sharded_target(source, applied, options.ranks), options.write,
                  options.compare_replicas);
}

}  // namespace shardtool::api
