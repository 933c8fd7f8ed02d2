#include "lib/api/planning/search/served_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "lib/api/dequantize/dequantize.h"
#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/planning/plan_cost.h"
#include "lib/api/planning/plan_memory.h"
#include "lib/api/planning/plan_reshard.h"
#include "lib/api/transfer/cast_values.h"
#include "lib/api/transfer/config_text.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/mapping/quantization.h"
#include "lib/plan/byte_count.h"

namespace shardtool::api {
namespace {

enum class ExpertsOver { kAsMapped, kTp, kBoth };

MappedTensors mapped(const LogicalCheckpoint& source, MappingChoice choice, ExpertsOver over,
                     const std::vector<TensorSpec>& specs,
                     const std::optional<mapping::ModelConfig>& config) {
  if (over != ExpertsOver::kAsMapped) keep_experts_whole(choice, over == ExpertsOver::kBoth);
  const auto mapping = with_typed_documents(choose_mapping(choice, source), choice);
  return {mapping, {mapping, specs, config ? &*config : nullptr, resolve_options(choice)}};
}

/// Returns the mesh of one replica.
mesh::Mesh mesh_of(const ServingLayout& layout) {
  std::vector<mesh::MeshAxis> axes;
  if (layout.pp > 1) axes.push_back({"pp", layout.pp});
  if (layout.ep > 1) axes.push_back({"ep", layout.ep});
  axes.push_back({"tp", layout.tp});
  return mesh::Mesh(std::move(axes));
}

/// Opens a checkpoint, and shows its tensors as `split --dtype` writes them.
LogicalCheckpoint opened(const SearchedModel& searched, const PlanOptions& plan) {
  const MappingChoice& choice = plan.mapping;
  LogicalCheckpoint source = open_logical(
      {searched.source}, {.mapping = choice, .takes_config_alone = true, .graph = plan.graph});
  if (!searched.dtype) return source;
  const auto config = model_config(choice, source);
  if (config && mapping::quantization_tag(*config))
    dequantize(source, choice.config, searched.dtype);
  cast_values(source, *searched.dtype);
  return source;
}

/// Returns the config.json that `split --dtype` writes: its type is that of caches, too.
std::optional<mapping::ModelConfig> config_of(const MappingChoice& choice,
                                              const LogicalCheckpoint& source,
                                              std::optional<Dtype> dtype) {
  auto config = model_config(choice, source);
  if (!config || !dtype) return config;
  const std::string& file = config->file();
  return mapping::parse_config(with_dtype(config->find("")->dump(), *dtype, file), file);
}

Error no_price(const std::string& source, const std::string& why) {
  return Error(ErrorCode::kUnsupported, "the passes of the model have no price: " + why)
      .note("model", source);
}

}  // namespace

ServedModel::ServedModel(const SearchedModel& searched, const SearchOptions& options)
    : options_(options),
      searched_(searched),
      source_(opened(searched, options.plan)),
      choice_(base_choice(source_, options.plan.mapping)),
      config_(config_of(choice_, source_, searched.dtype)),
      specs_(source_.specs()),
      cut_(mapped(source_, choice_, ExpertsOver::kAsMapped, specs_, config_)),
      over_tp_(mapped(source_, choice_, ExpertsOver::kTp, specs_, config_)),
      over_both_(mapped(source_, choice_, ExpertsOver::kBoth, specs_, config_)) {
  for (const TensorSpec& spec : specs_)
    plan::add_bytes(bytes_, byte_size(spec.dtype, spec.shape).value_or(0));
  whole_ = place({});
  limits_ = limits_of(*whole_);
}

SpaceLimits ServedModel::limits_of(const PlacedReplica& replica) const {
  SpaceLimits limits{1, 0, options_.pinned};
  for (const model::Layer& layer : replica.model.bound->layers) {
    limits.layers = std::max(limits.layers, layer.number + 1);
    for (const model::BoundOp& op : layer.ops) {
      const auto* experts = std::get_if<ops::Experts>(&op.op->kind);
      if (experts == nullptr) continue;
      limits.experts = std::max(limits.experts, replica.model.bound->size(experts->experts));
    }
  }
  return limits;
}

bool ServedModel::is_as_stored() const {
  return !source_.is_dequantized && std::ranges::none_of(source_.tensors, [](const auto& tensor) {
    return tensor.cast_from.has_value();
  });
}

const MappedTensors& ServedModel::mapped_for(const ServingLayout& layout) const {
  if (!layout.expert_parallel) return cut_;
  return layout.ep > 1 ? over_both_ : over_tp_;
}

std::unique_ptr<PlacedReplica> ServedModel::place(const ServingLayout& layout) const {
  const MappedTensors& mapped = mapped_for(layout);
  auto replica = std::make_unique<PlacedReplica>(PlacedReplica{
      {}, {mapped.mapping, mapped.resolutions.over(mesh_of(layout)), specs_}, {}, {}, {}});
  const AppliedMapping& applied = replica->applied;
  replica->mesh = applied.resolution.mesh;
  replica->model = planned_model(config(), options_.plan.graph, applied, model::Misfits::kRefuse,
                                 whole_ ? &whole_->model : nullptr);
  const std::string& source = source_.parts.front().path;
  if (!replica->model.bound) throw no_price(source, replica->model.why_not);
  if (!replica->model.borrowed.empty()) throw no_price(source, replica->model.borrowed);
  replica->weights = weights_of(replica->model.placed, applied.resolution);
  replica->weights.packed = replica->model.packed;
  replica->activations = dtype_of_norms(*replica->model.bound, replica->model.placed.specs);
  replica->pass.emplace(*replica->model.bound, replica->model.placed.specs, replica->weights,
                        replica->mesh);
  return replica;
}

mapping::Resolution ServedModel::resolve(const ServingLayout& layout) const {
  const mesh::Mesh replica = mesh_of(layout);
  if (layout.dp == 1) return mapped_for(layout).resolutions.over(replica);
  std::vector<mesh::MeshAxis> axes{{"dp", layout.dp}};
  axes.insert(axes.end(), replica.axes().begin(), replica.axes().end());
  return mapped_for(layout).resolutions.over(mesh::Mesh(std::move(axes)));
}

std::string ServedModel::too_small(const ServingLayout& layout) const {
  const DeviceBudget& device = options_.plan.device;
  const i64 share = ceil_div(bytes_, layout.replica());
  const i64 room = device.usable_bytes() - device.overhead_bytes;
  if (share <= room) return {};
  return fmt::format("an equal share of the weights is {}, and a device has {}",
                     format_bytes(share), format_bytes(room));
}

ReplicaMemory ServedModel::memory(const PlacedReplica& replica, const std::string& kv_dtype) const {
  PlanOptions one = options_.plan;
  one.workload.batch = 1;
  one.workload.prompt_len = options_.prompt_len;
  one.workload.context = options_.prompt_len + options_.answer_len;
  one.workload.kv_dtype = kv_dtype;
  std::vector<std::string> notes;
  const MemoryReport report = device_memory(config(), replica.model, replica.applied, one, notes);
  ReplicaMemory memory;
  memory.weights = report.devices[report.fullest].weights;
  memory.total = report.devices[report.fullest].total;
  memory.places = std::numeric_limits<i64>::max();
  for (const PlanDevice& device : report.devices) {
    const i64 each = device.kv + device.states;
    const i64 room = report.budget - (device.total - each);
    memory.per_sequence = std::max(memory.per_sequence, each);
    const i64 places = room < 0 ? 0 : each == 0 ? memory.places : room / each;
    // In a step every sequence has a token in work, beside no prompt.
    const i64 in_step = each + device.step_activations;
    const i64 of_step = in_step == 0 ? memory.places : (room + device.activations) / in_step;
    memory.places = std::min({memory.places, places, std::max<i64>(of_step, 0)});
  }
  const auto all = checked_mul(memory.places, replica.pass->token_groups());
  memory.places = all.value_or(std::numeric_limits<i64>::max());
  return memory;
}

model::ReplicaWorkload ServedModel::workload(const PlacedReplica& replica,
                                             const std::string& kv_dtype) const {
  model::ReplicaWorkload workload;
  workload.prompt_len = options_.prompt_len;
  workload.context = options_.prompt_len + options_.answer_len / 2;
  workload.cached = options_.cached_tokens();
  workload.activations = replica.activations;
  workload.kv_cache_bits =
      cache_bits(config(), replica.model.bound.get(), replica.model.placed.specs, kv_dtype);
  return workload;
}

const char* constraint_of(const Error& error) {
  if (error.code() == ErrorCode::kUnsupported) return "model";
  return is_mapping_error(error) ? "cut" : nullptr;
}

}  // namespace shardtool::api
