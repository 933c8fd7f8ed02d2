#include "shardtool/api/transform.h"

#include "shardtool/api/plan_file.h"
#include "shardtool/api/transfer.h"
#include "shardtool/base/error.h"

namespace shardtool::api {

namespace {

TransformReport reshard_by_plan(const ReshardOptions& options) {
  const PlanRecipe recipe = read_plan(options.plan);
  if (!options.ranks.empty()) {
    throw Error(ErrorCode::kUsage, "a plan is applied to all ranks that it was made for")
        .help("leave out --ranks and --rank");
  }
  const LogicalCheckpoint source =
      open_logical(options.sources.empty() ? recipe.sources : options.sources);
  check_same_input(recipe, source, options.plan);
  const AppliedMapping applied = apply_recipe(recipe, source, options.plan);
  TargetLayout target = sharded_target(source, applied, {});
  const plan::ReshardPlan counted = recount(recipe, source, target, options.plan);
  TransformReport report =
      transfer(source, std::move(target), options.write, options.compare_replicas);
  report.moved = {counted.bytes_moved, counted.bytes_kept};
  return report;
}

}  // namespace

TransformReport split(const SplitOptions& options) {
  ReshardOptions reshard;
  reshard.sources = {options.source};
  reshard.to = options.mapping;
  reshard.ranks = options.ranks;
  reshard.write = options.write;
  return api::reshard(reshard);
}

TransformReport merge(const MergeOptions& options) {
  const LogicalCheckpoint source = open_logical(options.sources);
  return transfer(source, whole_target(source), options.write, options.compare_replicas);
}

TransformReport reshard(const ReshardOptions& options) {
  if (!options.plan.empty()) return reshard_by_plan(options);
  const LogicalCheckpoint source = open_logical(options.sources);
  const AppliedMapping applied = apply_mapping(options.to, source);
  return transfer(source, sharded_target(source, applied, options.ranks), options.write,
                  options.compare_replicas);
}

}  // namespace shardtool::api
