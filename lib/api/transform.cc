#include "lib/api/transform.h"

#include "lib/api/planning/plan_file.h"
#include "lib/api/transfer/cast_values.h"
#include "lib/api/transfer/layout_source.h"
#include "lib/api/transfer/transfer.h"
#include "lib/base/error.h"

namespace shardtool::api {
namespace {

/// Shows a source's floats in the type that the options request.
LogicalCheckpoint with_casts(LogicalCheckpoint source, const WriteOptions& write) {
  if (write.dtype) cast_values(source, *write.dtype);
  return source;
}

LogicalCheckpoint open_source(const std::vector<std::string>& sources, const WriteOptions& write) {
  return with_casts(open_finished(sources), write);
}

TransformReport reshard_by_plan(const ReshardOptions& options) {
  if (options.write.layout != kPlainLayout) {
    throw Error(ErrorCode::kUsage, "a plan is applied in the plain layout")
        .help("reshard without --plan to write another --layout");
  }
  if (options.write.dtype) {
    throw Error(ErrorCode::kUsage, "a plan is applied without a cast")
        .help("reshard without --plan, or leave out --dtype");
  }
  plan::ReshardPlan counted;
  const auto open_task = [&] {
    const PlanRecipe recipe = read_plan(options.plan);
    if (!options.ranks.empty()) {
      throw Error(ErrorCode::kUsage, "a plan is applied to all ranks that it was made for")
          .help("leave out --ranks and --rank");
    }
    Task task{open_finished(options.sources.empty() ? recipe.sources : options.sources), {}};
    check_same_input(recipe, task.source, options.plan);
    const AppliedMapping applied = apply_recipe(recipe, task.source, options.plan);
    task.target = sharded_target(task.source, applied, {});
    counted = recount(recipe, task.source, task.target, options.plan);
    return task;
  };
  TransformReport report = transfer(open_task, options.write, options.compare_replicas);
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
  const bool is_plain = options.write.layout == kPlainLayout;
  const layouts::EngineLayout* layout =
      is_plain ? nullptr : &layouts::find_layout(options.write.layout);
  const auto open_task = [&] {
    Task task{
        options.from_layout.empty()
            ? open_source(options.sources, options.write)
            : with_casts(open_in_layout({options.sources, options.from_layout, options.config}),
                         options.write),
        {}};
    task.target = whole_target(task.source, layout);
    return task;
  };
  return transfer(open_task, options.write, options.compare_replicas);
}

TransformReport reshard(const ReshardOptions& options) {
  if (!options.plan.empty()) return reshard_by_plan(options);
  const auto open_task = [&] {
    Task task{open_source(options.sources, options.write), {}};
    MappingChoice to = options.to;
    to.engine_layout = options.write.layout;
    const AppliedMapping applied = apply_mapping(to, task.source);
    task.target = sharded_target(task.source, applied, options.ranks);
    return task;
  };
  return transfer(open_task, options.write, options.compare_replicas);
}

}  // namespace shardtool::api
