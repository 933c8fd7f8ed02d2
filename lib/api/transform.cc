#include "lib/api/transform.h"

#include <fmt/format.h>

#include <utility>

#include "lib/api/dequantize/dequantize.h"
#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/planning/plan_file.h"
#include "lib/api/transfer/cast_values.h"
#include "lib/api/transfer/sources/layout_source.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/api/transfer/transfer.h"
#include "lib/base/error.h"

namespace shardtool::api {
namespace {

/// Opens the inputs and shows their values as the options request.
LogicalCheckpoint open_changed(const std::vector<std::string>& sources, const WriteOptions& write,
                               const MappingChoice& mapping) {
  LogicalCheckpoint source = open_finished(sources, {.mapping = mapping});
  if (write.dequantize) dequantize(source, mapping.config, write.dtype);
  if (write.dtype) cast_values(source, *write.dtype);
  return source;
}

/// Warns of a checkpoint of another tool that would keep its names.
void warn_of_other_names(LogicalCheckpoint& source) {
  const std::string advice = layout_advice(source);
  if (advice.empty()) return;
  source.parts.front().warnings.push_back(
      {"the tensors keep the names that they have; " + advice + " to get the model's", "",
       format::Oddity::kOtherEntry});
}

/// Returns the destination. A mapping of its own has its own mesh.
MappingChoice destination(const ReshardOptions& options, const LogicalCheckpoint& source) {
  MappingChoice to = options.to;
  if (options.to_layout.empty() || !names_file(options.to_layout)) to = over_own_mesh(source, to);
  if (!options.to_layout.empty()) to = at_layout(to, options.to_layout, source);
  to.engine_layout = options.write.layout;
  return to;
}

/// Returns a warning if the source has the files of an engine and the output gets plain ones.
std::vector<std::string> warnings_of_form(const LogicalCheckpoint& source,
                                          const WriteOptions& options) {
  const auto& manifest = source.parts.front().manifest;
  if (!manifest || !source.is_sharded()) return {};
  const bool is_of_engine =
      manifest->layout != kPlainLayout && manifest->layout != format::kWholeLayout;
  if (!is_of_engine || options.layout != kPlainLayout) return {};
  return {fmt::format(
      "the output has plain files, and the source those of {0}: --layout {0} writes such files",
      manifest->layout)};
}

TransformReport reshard_by_plan(const ReshardOptions& options) {
  if (options.write.layout != kPlainLayout) {
    throw Error(ErrorCode::kUsage, "a plan is applied in the plain layout")
        .help("reshard without --plan to write another --layout");
  }
  if (options.write.dtype || options.write.dequantize) {
    throw Error(ErrorCode::kUsage, "a plan is applied to the values as they are stored")
        .help("reshard without --plan, or leave out --dtype and --dequantize");
  }
  const PlanRecipe recipe = read_plan(options.plan);
  if (!options.ranks.empty()) {
    throw Error(ErrorCode::kUsage, "a plan is applied to all ranks that it was made for")
        .help("leave out --ranks and --rank");
  }
  const auto& sources = options.sources.empty() ? recipe.sources : options.sources;
  Task task{open_planned(recipe, sources, options.plan), {}};
  const AppliedMapping applied = apply_recipe(recipe, task.source, options.plan);
  task.target = sharded_target(task.source, applied, {});
  const plan::ReshardPlan counted = recount(recipe, task.source, task.target, options.plan);
  TransformReport report = transfer(std::move(task), options.write, options.compare_replicas);
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
  MappingChoice of_source;
  of_source.config = options.config;
  Task task{open_changed(options.sources, options.write, of_source), {}};
  warn_of_other_names(task.source);
  task.target = whole_target(task.source, layout);
  task.target.config = options.config;
  return transfer(std::move(task), options.write, options.compare_replicas);
}

TransformReport reshard(const ReshardOptions& options) {
  if (!options.plan.empty()) return reshard_by_plan(options);
  Task task{
      open_changed(options.sources, options.write, reading_choice(options.to, options.to_layout)),
      {}};
  const AppliedMapping applied = apply_mapping(destination(options, task.source), task.source);
  task.target = sharded_target(task.source, applied, options.ranks);
  const std::vector<std::string> warnings = warnings_of_form(task.source, options.write);
  TransformReport report = transfer(std::move(task), options.write, options.compare_replicas);
  report.warnings.insert(report.warnings.end(), warnings.begin(), warnings.end());
  return report;
}

}  // namespace shardtool::api
