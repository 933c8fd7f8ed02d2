#include "lib/api/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <map>

#include "lib/api/drawn_rules.h"
#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/mapping/recorded_mapping.h"
#include "lib/api/planning/emit/emit.h"
#include "lib/api/planning/plan_file.h"
#include "lib/api/planning/plan_forward.h"
#include "lib/api/planning/plan_memory.h"
#include "lib/api/planning/plan_reshard.h"
#include "lib/api/planning/source_reads.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/api/transfer/target_layout.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/mapping/resolve/axis_usage.h"
#include "lib/plan/byte_count.h"

namespace shardtool::api {
namespace {

Error impossible(const std::string& what, const std::string& help) {
  return std::move(Error(ErrorCode::kUsage, what).help(help));
}

void check(const PlanOptions& options) {
  options.device.check();
  for (const auto& mesh : {options.mapping.mesh, options.to_mesh}) {
    if (!mesh || mesh->size() <= kMostDevices) continue;
    throw impossible(fmt::format("{} has {} devices, and a plan is made for at most {}",
                                 to_string(*mesh), mesh->size(), kMostDevices),
                     "is a size of the mesh mistyped?");
  }
}

/// Throws kUsage where config.json stands alone and the plan is one of stored weights.
void require_weights(const LogicalCheckpoint& source, const PlanOptions& options) {
  if (!source.is_config_alone || !(options.is_reshard() || options.recipe || options.emit)) return;
  throw impossible("config.json alone has no weights to reshard, or to emit for another program",
                   "leave out --to, --to-preset, --to-mesh, -o and --emit, or give the folder with "
                   "the weights")
      .at({source.parts.front().config_path, 0, 0, ""});
}

/// Both layouts of a reshard, resolved concurrently.
struct AppliedEnds {
  std::optional<AppliedMapping> from;
  AppliedMapping to;
};

/// True if the shards of the source, all of them, are those of the layout.
bool is_layout_of(const LogicalCheckpoint& source, const AppliedMapping& layout) {
  const bool is_complete =
      source.is_sharded() &&
      std::ranges::all_of(layout.resolution.tensors, [&](const mapping::ResolvedTensor& tensor) {
        return source.tensors[tensor.tensor].ranks == tensor.layout->ranks();
      });
  return is_complete && !first_displaced(source, layout.resolution);
}

/// Makes a plan that will be applied begin at the shards. Throws kUsage if it begins elsewhere.
void begin_at_source(const LogicalCheckpoint& source, const PlanOptions& options,
                     AppliedEnds& ends) {
  if (!options.recipe) return;
  if (!options.is_reshard())
    throw impossible("a plan that is written is one of a reshard, and there is none",
                     "say where it goes with --to, --to-preset or --to-mesh");
  if (ends.to.layout != kPlainLayout)
    throw impossible("a plan that is written is applied in the plain layout",
                     "leave out --layout, and write it with `shardtool reshard --layout`");
  if (ends.from && !is_layout_of(source, *ends.from)) {
    throw impossible(
        "a plan that begins at another layout than that of the source cannot be applied to it",
        "plan from the shards as they are, or use --format json for the report alone");
  }
  ends.from.reset();
}

std::string place_name(const AppliedMapping& applied, const MappingChoice& choice) {
  const std::string mesh = to_string(applied.resolution.mesh);
  return choice.layout.empty() ? mesh : fmt::format("{} ({})", mesh, choice.layout);
}

std::string source_name(const LogicalCheckpoint& source) {
  return source.is_sharded() ? to_string(source.parts.front().manifest->mesh) : "files";
}

void add(std::vector<std::string>& to, const std::vector<std::string>& from) {
  for (const std::string& text : from) {
    if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(text);
  }
}

size_t find(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  Error error(ErrorCode::kUnknownName,
              fmt::format("the reshard has no tensor '{}'", quote_for_message(name)));
  const std::string hint = did_you_mean(name, names);
  throw std::move(error).help(hint.empty() ? "`shardtool inspect SRC --tensors` lists the tensors"
                                           : hint);
}

AppliedEnds apply_ends(const ReshardEnds& ends, const LogicalCheckpoint& source) {
  const auto applied = [&](const MappingChoice& choice) {
    return without_left_out(apply_mapping(choice, source));
  };
  if (!ends.from) return {std::nullopt, applied(ends.to)};
  // Deferred to `get` if no thread can be created.
  auto from =
      std::async(std::launch::async | std::launch::deferred, [&] { return applied(*ends.from); });
  AppliedMapping to = applied(ends.to);  // its errors take precedence
  return {from.get(), std::move(to)};
}

void add_reshard(const LogicalCheckpoint& source, const ReshardEnds& ends,
                 const AppliedEnds& applied, const PlanOptions& options, PlanReport& report) {
  const auto& [from, to] = applied;
  report.reshard = plan_move(source, from ? &*from : nullptr, to, options);
  if (options.hardware)
    report.reshard_time = plan::time_of(*report.reshard, *options.hardware, options.node_size);
  for (const auto& target : to.resolution.tensors) {
    report.tensors.push_back(source.tensors[target.tensor].spec.name);
  }
  if (!options.explain.empty()) report.explained = find(report.tensors, options.explain);
  if (options.recipe)
    report.recipe = to_json(
        make_recipe(options.sources, source, to, ends.to, options.node_size, *report.reshard));
  report.from = from ? place_name(*from, *ends.from) : source_name(source);
  report.to = place_name(to, ends.to);
}

/// Returns what the program of PlanOptions::emit takes.
std::string emitted_plan(const LogicalCheckpoint& source, const AppliedEnds& ends,
                         const PlanOptions& options) {
  std::optional<EmittedLayout> from;
  if (options.is_reshard() && ends.from) {
    from = emitted_layout(ends.from->resolution, ends.from->specs);
  } else if (options.is_reshard() && source.is_sharded()) {
    from = emitted_shards(source);
  }
  return emitted(*options.emit, from ? &*from : nullptr,
                 emitted_layout(ends.to.resolution, ends.to.specs), model_name(source));
}

/// Sums of all tensors by sender and receiver, ascending.
std::vector<plan::Transfer> all_pairs(const plan::ReshardPlan& reshard) {
  std::map<std::pair<i64, i64>, i64> bytes;
  for (const plan::ReshardGroup& group : reshard.groups) {
    const auto tensors = static_cast<i64>(group.tensors.size());
    for (const plan::Transfer& transfer : group.each.transfers)
      plan::add_bytes(bytes[{transfer.from, transfer.to}], plan::times(transfer.bytes, tensors));
  }
  std::vector<plan::Transfer> pairs;
  for (const auto& [ends, sum] : bytes) pairs.push_back({ends.first, ends.second, sum});
  return pairs;
}

void add_reads(const LogicalCheckpoint& source, const AppliedMapping& applied, PlanReport& report) {
  try {
    report.reads = source_reads(source, applied);
  } catch (const Error& error) {
    // A layout that no file can have may still be planned.
    report.warnings.push_back("the requests to the object store are not counted: " +
                              error.message());
  }
}

/// Returns the levels of the busiest rank, several joined into one where there are too many.
std::vector<DrawnLevel> drawn_levels(const plan::ReshardPlan& reshard,
                                     const std::vector<std::string>& names) {
  const size_t together = (reshard.order.size() + kMostLevels - 1) / kMostLevels;
  std::vector<DrawnLevel> levels;
  for (size_t i = 0; i < reshard.order.size(); ++i) {
    const std::vector<size_t>& tensors = reshard.groups[reshard.order[i]].tensors;
    const plan::MemoryLevel& level = reshard.levels[i];
    if (i % together == 0) {
      levels.push_back({names[tensors.front()], 0, level});
    } else {
      plan::MemoryLevel& joined = levels.back().bytes;
      const i64 highest = std::max({joined.first, joined.last, level.first, level.last});
      joined = {highest, highest, level.after};
    }
    levels.back().tensors += std::ssize(tensors);
  }
  return levels;
}

PlanDrawings drawings(const AppliedMapping& applied, const PlanOptions& options,
                      const PlanReport& report) {
  PlanDrawings drawings{drawn_rules(applied.resolution, applied.specs), options.node_size, {}, {}};
  if (report.reshard) {
    drawings.pairs = all_pairs(*report.reshard);
    drawings.levels = drawn_levels(*report.reshard, report.tensors);
  }
  return drawings;
}

/// Returns the costs of a forward pass; without times if the workload does not fit.
CostReport cost_of(const mapping::ModelConfig* model, const AppliedMapping& applied,
                   const PlanOptions& options, const MemoryReport& memory) {
  if (memory.fits != false || !options.hardware) return planned_cost(model, applied, options);
  PlanOptions without_times = options;
  without_times.hardware.reset();
  CostReport cost = planned_cost(model, applied, without_times);
  const PlanDevice& fullest = memory.devices[memory.fullest];
  cost.untimed = fmt::format("rank {} needs {} and has {}", fullest.rank,
                             format_bytes(fullest.total), format_bytes(memory.budget));
  return cost;
}

PlannedReplicas replicas_of(const TrainingPlan& training, const MemoryReport& memory) {
  return {training.data_parallel, plan::times(training.data_parallel, memory.mesh.size()),
          training.zero_stage};
}

/// Replicas that are axes of the mesh are not those that ZeRO divides among.
void warn_of_replicas_in_mesh(const TrainingPlan& training, const mapping::Resolution& resolution,
                              std::vector<std::string>& warnings) {
  if (training.zero_stage == 0) return;
  for (const mesh::MeshAxis& axis : mapping::uncut_axes(resolution)) {
    warnings.push_back(
        fmt::format("--zero {} divides nothing among the {} devices along mesh axis '{}': replicas "
                    "are those of --dp, so leave the axis out of the mesh and add --dp {}",
                    training.zero_stage, axis.size, quote_for_message(axis.name), axis.size));
  }
}

}  // namespace

void DeviceBudget::check() const {
  if (!(fraction > 0 && fraction <= 1)) {
    throw impossible(fmt::format("a memory fraction of {} is not above 0 and at most 1", fraction),
                     "engines use 0.85 to 0.95");
  }
  if (bytes > 0 && overhead_bytes >= usable_bytes()) {
    throw impossible(fmt::format("the overhead of a device is {}, and {} of its memory may be used",
                                 format_bytes(overhead_bytes), format_bytes(usable_bytes())),
                     "give a larger --budget or --memory-fraction, or a smaller --overhead");
  }
}

PlanReport make_plan(const PlanOptions& options) {
  check(options);
  const LogicalCheckpoint source = open_logical(
      options.sources, {.mapping = reading_choice(options.mapping, options.to.value_or("")),
                        .takes_config_alone = true,
                        .graph = options.graph});
  require_weights(source, options);
  PlanReport report;
  report.is_from_config = source.is_config_alone;
  report.source = source.parts.front().path;
  report.warnings = source.warnings();
  ReshardEnds ends;
  ends.to = base_choice(source, options.mapping);
  if (options.is_reshard()) ends = reshard_ends(source, options);
  AppliedEnds ends_applied = apply_ends(ends, source);
  begin_at_source(source, options, ends_applied);
  const AppliedMapping& applied = ends_applied.to;
  // Refuses what split refuses: tensors that no chunk can hold.
  if (applied.form.has_chunks) sharded_target(source, applied, {});
  add(report.warnings, applied.resolution.warnings);
  add_reads(source, applied, report);
  if (options.is_reshard()) add_reshard(source, ends, ends_applied, options, report);
  if (options.emit) report.emitted = emitted_plan(source, ends_applied, options);
  if (options.draws) report.drawings = drawings(applied, options, report);
  std::vector<std::string> notes;
  report.memory = memory_report(source, applied, ends.to, options, notes);
  const auto config = model_config(ends.to, source);
  const mapping::ModelConfig* model = config ? &*config : nullptr;
  if (options.training) report.training_comm = training_comm(model, applied, options, notes);
  add(report.warnings, notes);
  if (options.training) {
    report.is_timed = options.hardware.has_value();
    report.replicas = replicas_of(*options.training, report.memory);
    warn_of_replicas_in_mesh(*options.training, applied.resolution, report.warnings);
  } else if (options.prices_forward) {
    report.cost = cost_of(model, applied, options, report.memory);
  }
  report.price_per_hour = options.device.price_per_hour * static_cast<double>(report.devices());
  return report;
}

}  // namespace shardtool::api
