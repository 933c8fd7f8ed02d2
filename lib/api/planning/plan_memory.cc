#include "lib/api/planning/plan_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "lib/api/planning/cache_dtype.h"
#include "lib/api/planning/plan_cost.h"
#include "lib/api/planning/planned_model.h"
#include "lib/api/planning/trained_parameters.h"
#include "lib/api/planning/training_memory.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/mapping/document/glob.h"
#include "lib/plan/byte_count.h"
#include "lib/plan/weights.h"

namespace shardtool::api {
namespace {

constexpr int kDefaultBits = 16;  ///< of an activation

constexpr const char* kOther = "other";

/// Names of the built-in classes, in the order of reports.
constexpr std::pair<model::TensorClass, const char*> kClasses[] = {
    {model::TensorClass::kEmbedding, "embedding"},
    {model::TensorClass::kAttention, "attention"},
    {model::TensorClass::kMlp, "mlp"},
    {model::TensorClass::kExperts, "experts"},
    {model::TensorClass::kNorms, "norms"},
    {model::TensorClass::kScales, "scales"},
    {model::TensorClass::kHead, "head"},
    {model::TensorClass::kOther, kOther}};

/// Classes of a report: the user's own classes are matched first, then the built-in ones.
class WeightClasses {
 public:
  /// Throws kMappingSchema for an invalid glob, kUsage for an empty name and for "other".
  explicit WeightClasses(const std::vector<OwnClass>& own) {
    for (const OwnClass& mine : own) {
      if (mine.name.empty() || mine.name == kOther) {
        throw Error(ErrorCode::kUsage, "a custom class has no name, or is called \"other\"")
            .help("write NAME=GLOB, like router=**.mlp.gate.weight");
      }
      own_.emplace_back(number_of(mine.name), mapping::glob_filter(mine.glob));
    }
    for (const auto& [built_in, name] : kClasses) numbers_[built_in] = number_of(name);
  }

  const std::vector<std::string>& names() const { return names_; }
  int of(const std::string& tensor, model::TensorClass built_in) const {
    for (const auto& [number, matches] : own_) {
      if (matches(tensor)) return number;
    }
    return numbers_.at(built_in);
  }

 private:
  int number_of(const std::string& name) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found != names_.end()) return static_cast<int>(found - names_.begin());
    names_.push_back(name);
    return static_cast<int>(names_.size()) - 1;
  }

  std::vector<std::string> names_;
  std::vector<std::pair<int, std::function<bool(std::string_view)>>> own_;
  std::map<model::TensorClass, int> numbers_;
};

/// Groups tensors by layout, class and width, so that the work is per group instead of per tensor.
std::vector<plan::WeightGroup> weight_groups(const AppliedMapping& applied,
                                             const PlannedModel& model,
                                             const WeightClasses& classes) {
  std::map<std::tuple<const layout::Layout*, int, int>, size_t> numbers;
  std::vector<plan::WeightGroup> groups;
  for (size_t t = 0; t < applied.resolution.tensors.size(); ++t) {
    const mapping::ResolvedTensor& resolved = applied.resolution.tensors[t];
    const TensorSpec& spec = applied.specs[resolved.tensor];
    const layout::Layout& layout = *resolved.layout;
    const std::tuple key(&layout, classes.of(spec.name, model.classes[t]), bits(spec.dtype));
    const auto [found, is_new] = numbers.try_emplace(key, groups.size());
    if (!is_new) {
      ++groups[found->second].tensors;
      continue;
    }
    groups.push_back({std::get<1>(key), std::get<2>(key), {&layout.holders(), layout.ranks()}});
  }
  return groups;
}

void set_weights(const std::vector<plan::DeviceWeights>& weights, MemoryReport& report) {
  for (size_t rank = 0; rank < weights.size(); ++rank) {
    PlanDevice device;
    device.rank = static_cast<i64>(rank);
    device.weights = weights[rank].bytes;
    device.by_class = weights[rank].by_class;
    device.replicated = weights[rank].replicated_bytes;
    device.padding = weights[rank].padding_bytes;
    report.devices.push_back(std::move(device));
  }
}

/// Tensor that the layout's files have beside the model's own.
struct AddedConstant {
  size_t beside = 0;  ///< tensor of the resolution whose devices store it
  size_t class_number = 0;
  i64 bytes = 0;
  std::vector<i64> ranks;  ///< of the devices, ascending
};

std::vector<AddedConstant> added_constants(const AppliedMapping& applied,
                                           const WeightClasses& classes) {
  std::vector<AddedConstant> added;
  if (!applied.output) return added;
  std::unordered_map<size_t, size_t> resolved;  // by index into the specs
  for (size_t t = 0; t < applied.resolution.tensors.size(); ++t)
    resolved.emplace(applied.resolution.tensors[t].tensor, t);
  for (const mapping::OutputTensor& output : *applied.output) {
    const auto beside = resolved.find(output.content.tensor);
    if (!output.constant || beside == resolved.end()) continue;
    const int number = classes.of(output.name, model::TensorClass::kOther);
    AddedConstant constant{beside->second,
                           static_cast<size_t>(number),
                           byte_size(output.constant->dtype, output.constant->shape).value_or(0),
                           {}};
    for (const i64 rank : applied.resolution.tensors[beside->second].layout->ranks()) {
      const bool is_elsewhere =
          !output.ranks.empty() && !std::ranges::binary_search(output.ranks, rank);
      if (!is_elsewhere) constant.ranks.push_back(rank);
    }
    added.push_back(std::move(constant));
  }
  return added;
}

/// Adds the constants to the weights of the devices; a lower rank's are copied on the others.
void add_to_devices(std::span<const AddedConstant> constants, MemoryReport& report) {
  for (const AddedConstant& constant : constants) {
    for (const i64 rank : constant.ranks) {
      PlanDevice& device = report.devices[static_cast<size_t>(rank)];
      plan::add_bytes(device.weights, constant.bytes);
      plan::add_bytes(device.by_class[constant.class_number], constant.bytes);
      if (rank != constant.ranks.front()) plan::add_bytes(device.replicated, constant.bytes);
    }
  }
}

/// Caches and states per sequence, by rank; empty if the model is unknown.
struct Kept {
  std::vector<model::DeviceCaches> caches;
  std::vector<i64> states;  ///< bytes per sequence
  int cache_bits = kDefaultBits;
  int activation_bits = kDefaultBits;
};

/// Returns true if config.json has a decoder that attends to an encoder.
bool says_cross(const mapping::ModelConfig& config) {
  return std::ranges::any_of(
      std::initializer_list<const char*>{"is_encoder_decoder", "add_cross_attention"},
      [&](const char* key) {
        const nlohmann::json* value = config.find(key);
        return value != nullptr && value->is_boolean() && value->get<bool>();
      });
}

void note_missing(const std::vector<model::LayerCache>& caches, const mapping::ModelConfig& config,
                  std::vector<std::string>& notes) {
  if (caches.empty()) {
    notes.emplace_back("no attention that caches was found: no KV cache is counted");
    return;
  }
  const bool crosses = std::ranges::any_of(caches, &model::LayerCache::cross);
  if (crosses || !says_cross(config)) return;
  notes.push_back(
      fmt::format("{} has attention to an encoder, but its projections were not found: its cache "
                  "is not counted",
                  config.file()));
}

/// Computes caches and states. Adds to `notes` what is not counted. Throws kUsage for an unknown
/// dtype of the cache.
Kept kept_of(const mapping::ModelConfig* config, const PlannedModel& model,
             const std::string& kv_dtype, i64 n_devices, std::vector<std::string>& notes) {
  Kept kept;
  const std::vector<TensorSpec>& specs = model.placed.specs;
  kept.activation_bits = own_bits(config, model.bound.get(), specs);
  kept.cache_bits = cache_bits(config, model.bound.get(), specs, kv_dtype);
  if (!model.bound) {
    notes.push_back(fmt::format(
        "weights have no classes, and no KV cache, states or activations are counted: {}",
        model.why_not));
    return kept;
  }
  if (!model.borrowed.empty()) {
    notes.push_back(fmt::format("{}: caches, states and activations are counted as those of {}",
                                model.borrowed, model.bound->graph->family));
  }
  try {
    const auto caches = model::attention_caches(*model.bound);
    note_missing(caches, *config, notes);
    kept.caches = model::device_caches(caches, model.layouts(), n_devices);
    kept.states =
        model::recurrent_states(*model.bound, model.layouts(), n_devices, kept.activation_bits);
  } catch (const Error& error) {
    const auto why_not = why_not_this_model(error);
    if (!why_not) throw;
    notes.push_back("caches and states are not counted: " + *why_not);
  }
  return kept;
}

bool attends_to_encoder(const Kept& kept) {
  return std::ranges::any_of(kept.caches, [](const auto& device) { return !device.cross.empty(); });
}

/// Throws kUsage for a cache that the prompt overflows. A prompt of an encoder is not in the cache
/// of the decoder's tokens.
void check_context(const Kept& kept, const Workload& workload) {
  if (workload.context == 0 || workload.context >= workload.prompt_len) return;
  if (attends_to_encoder(kept)) return;
  throw std::move(
      Error(ErrorCode::kUsage,
            fmt::format("a context of {} is less than the prompt, {}, which is in it",
                        plural(workload.context, "token"), plural(workload.prompt_len, "token")))
          .help("--context counts the prompt and the tokens after it: leave it out, or "
                "give at least --prompt-len"));
}

/// Returns the number of encoder positions in each sequence's cross-attention cache: fixed by the
/// model, or else the length of the prompt.
i64 source_positions(const PlannedModel& model, const Kept& kept, const Workload& workload,
                     std::vector<std::string>& notes) {
  if (!attends_to_encoder(kept)) return 0;
  if (const auto fixed = model::source_positions(*model.bound)) return *fixed;
  if (workload.prompt_len == 0 && workload.context > 0) {
    notes.emplace_back(
        "the cache of attention to the encoder is not counted: give its number of positions by "
        "--prompt-len");
  }
  return workload.prompt_len;
}

void set_cache(const PlannedModel& model, const Kept& kept, const Workload& workload,
               MemoryReport& report, std::vector<std::string>& notes) {
  const plan::CacheStore store{kept.cache_bits, workload.block_tokens};
  const i64 sources = workload.context == 0 ? 0 : source_positions(model, kept, workload, notes);
  for (size_t rank = 0; rank < kept.caches.size(); ++rank) {
    PlanDevice& device = report.devices[rank];
    const model::DeviceCaches& caches = kept.caches[rank];
    device.kv_per_token = plan::kv_bytes_per_token(caches.layers, store);
    device.kv = plan::times(plan::kv_bytes(caches.layers, store, workload.context), workload.batch);
    device.cross_kv =
        plan::times(plan::kv_bytes(caches.cross, {kept.cache_bits, 1}, sources), workload.batch);
    plan::add_bytes(device.kv, device.cross_kv);
  }
}

/// Leaves states at 0 if there is no workload.
void set_states(const Kept& kept, const Workload& workload, MemoryReport& report) {
  if (workload.context == 0) return;
  for (size_t rank = 0; rank < kept.states.size(); ++rank) {
    report.devices[rank].states = plan::times(kept.states[rank], workload.batch);
  }
}

void set_capacity(const Kept& kept, const Workload& workload, MemoryReport& report) {
  const plan::CacheStore store{kept.cache_bits, workload.block_tokens};
  for (size_t rank = 0; rank < kept.caches.size() && report.budget > 0; ++rank) {
    PlanDevice& device = report.devices[rank];
    if (device.kv_per_token == 0) continue;
    const i64 room = report.budget - (device.total - device.kv) - device.cross_kv;
    device.kv_capacity_tokens =
        plan::kv_capacity_tokens(kept.caches[rank].layers, store, room, workload.context);
  }
}

void set_activations(const PlannedModel& model, const Kept& kept, const Workload& workload,
                     MemoryReport& report) {
  if (!model.bound || (workload.prompt_len == 0 && workload.context == 0)) return;
  const auto widths = model::live_widths(*model.bound, model.layouts(), std::ssize(report.devices));
  const i64 tokens = plan::times(workload.batch, std::max<i64>(1, workload.prompt_len));
  for (size_t rank = 0; rank < report.devices.size(); ++rank) {
    PlanDevice& device = report.devices[rank];
    const auto of = [&](i64 in_work, i64 sequences) {
      return plan::inference_activations(widths[rank], kept.activation_bits, in_work, sequences);
    };
    device.activations = of(tokens, workload.batch);
    device.step_activations = of(1, 1);
  }
}

/// Sets the weights that devices gather for the largest layer, along axes of role "fsdp" and from
/// the replicas of ZeRO 3. Training has their gradients, too, before it scatters them.
void set_gathered(const PlannedModel& model, const mapping::Resolution& resolution,
                  const std::optional<TrainingPlan>& training, MemoryReport& report,
                  std::vector<std::string>& notes) {
  const bool is_partitioned = training && training->zero_stage == 3;
  const i64 replicas = is_partitioned ? training->data_parallel : 1;
  const mesh::Over token_axes = is_partitioned ? token_axes_of(model, resolution) : mesh::Over{};
  const i64 groups = mesh::extent(resolution.mesh, token_axes);
  if (resolution.gathered.empty() && replicas == 1 && groups == 1) return;
  if (!model.bound) {
    notes.push_back("gathered weights are not counted: " + model.why_not);
    return;
  }
  const std::vector<i64> bytes =
      gathered_weights(model, resolution, training.has_value(), token_axes, std::span(&replicas, 1))
          .front();
  for (size_t rank = 0; rank < report.devices.size(); ++rank)
    report.devices[rank].gathered = training ? plan::times(bytes[rank], 2) : bytes[rank];
}

/// The parts of a device's memory, by their names in reports. Training state has the weights.
std::array<std::pair<const char*, i64>, 7> parts_of(const PlanDevice& device) {
  return {{{"weights", device.training > 0 ? 0 : device.weights},
           {"gathered weights", device.gathered},
           {"kv cache", device.kv},
           {"recurrent states", device.states},
           {"activations", device.activations},
           {"training state", device.training},
           {"overhead", device.overhead}}};
}

void set_totals(const DeviceBudget& budget, MemoryReport& report) {
  report.budget = budget.bytes;
  if (budget.fraction < 1) report.budget = budget.usable_bytes();
  for (size_t rank = 0; rank < report.devices.size(); ++rank) {
    PlanDevice& device = report.devices[rank];
    device.overhead = budget.overhead_bytes;
    for (const auto& [name, bytes] : parts_of(device)) plan::add_bytes(device.total, bytes);
    if (report.budget > 0) device.fits = device.total <= report.budget;
    if (device.total > report.devices[report.fullest].total) report.fullest = rank;
  }
  const PlanDevice& fullest = report.devices[report.fullest];
  if (report.budget > 0) report.fits = fullest.fits;
  const auto parts = parts_of(fullest);
  std::tie(report.largest_part, report.largest_bytes) =
      *std::ranges::max_element(parts, {}, [](const auto& part) { return part.second; });
}

constexpr const char* kNoLayer = "other";  ///< of tensors that no op reads

std::string layer_name(const PlannedModel& model, size_t tensor) {
  if (!model.bound || !model.layers[tensor]) return kNoLayer;
  return model::name_of(model.bound->layers[*model.layers[tensor]]);
}

/// Bytes of a rank's part of a tensor; 0 if it has none.
i64 bytes_on(const layout::Layout& layout, i64 rank, Dtype dtype) {
  const auto region = layout.region(rank);
  return region ? byte_size(dtype, index::local_shape(*region)).value_or(0) : 0;
}

/// Adds up the weights of the fullest device by layer and class.
void set_layers(const AppliedMapping& applied, const PlannedModel& model,
                const WeightClasses& classes, std::span<const AddedConstant> constants,
                MemoryReport& report) {
  const i64 rank = report.devices[report.fullest].rank;
  std::map<std::pair<size_t, std::string>, size_t> rows;  // sorted by layer; tensors of none last
  for (size_t t = 0; t < applied.resolution.tensors.size(); ++t) {
    const size_t layer = model.layers[t].value_or(std::numeric_limits<size_t>::max());
    rows.try_emplace({layer, layer_name(model, t)});
  }
  for (auto& [key, row] : rows) {
    const bool is_first = report.layers.empty() || report.layers.back().layer != key.second;
    if (is_first) report.layers.push_back({key.second, std::vector<i64>(report.classes.size(), 0)});
    row = report.layers.size() - 1;
  }
  for (size_t t = 0; t < applied.resolution.tensors.size(); ++t) {
    const mapping::ResolvedTensor& resolved = applied.resolution.tensors[t];
    const TensorSpec& spec = applied.specs[resolved.tensor];
    const size_t layer = model.layers[t].value_or(std::numeric_limits<size_t>::max());
    LayerWeights& row = report.layers[rows.at({layer, layer_name(model, t)})];
    const auto of = static_cast<size_t>(classes.of(spec.name, model.classes[t]));
    plan::add_bytes(row.by_class[of], bytes_on(*resolved.layout, rank, spec.dtype));
  }
  for (const AddedConstant& constant : constants) {
    if (!std::ranges::binary_search(constant.ranks, rank)) continue;
    const size_t layer = model.layers[constant.beside].value_or(std::numeric_limits<size_t>::max());
    LayerWeights& row = report.layers[rows.at({layer, layer_name(model, constant.beside)})];
    plan::add_bytes(row.by_class[constant.class_number], constant.bytes);
  }
}

/// Returns the number of groups of devices with sequences of their own: along replica_axes, and
/// along those that distribute experts alone.
i64 sequence_groups(const PlannedModel& model, const mapping::Resolution& resolution) {
  return mesh::extent(resolution.mesh, token_axes_of(model, resolution)) *
         mesh::extent(resolution.mesh, replica_axes(resolution));
}

}  // namespace

MemoryReport device_memory(const mapping::ModelConfig* config, const AppliedMapping& applied,
                           const PlanOptions& options, std::vector<std::string>& notes) {
  return device_memory(config, planned_model(config, options.graph, applied), applied, options,
                       notes);
}

MemoryReport device_memory(const mapping::ModelConfig* config, const PlannedModel& model,
                           const AppliedMapping& applied, const PlanOptions& options,
                           std::vector<std::string>& notes) {
  const WeightClasses classes(options.classes);
  MemoryReport report;
  report.mesh = applied.resolution.mesh;
  report.classes = classes.names();
  for (const TensorSpec& spec : applied.specs) {
    plan::add_bytes(report.checkpoint_bytes, byte_size(spec.dtype, spec.shape).value_or(0));
  }
  set_weights(plan::device_weights(report.mesh.size(), static_cast<int>(report.classes.size()),
                                   weight_groups(applied, model, classes)),
              report);
  const std::vector<AddedConstant> constants = added_constants(applied, classes);
  add_to_devices(constants, report);
  set_gathered(model, applied.resolution, options.training, report, notes);
  if (options.training) {
    set_training(applied, model, options, report, notes);
    set_totals(options.device, report);
    if (options.draws) set_layers(applied, model, classes, constants, report);
    return report;
  }
  const Kept kept = kept_of(config, model, options.workload.kv_dtype, report.mesh.size(), notes);
  check_context(kept, options.workload);
  report.sequence_groups = sequence_groups(model, applied.resolution);
  report.batch = options.workload.batch;
  Workload workload = options.workload;  // of a device
  workload.batch = ceil_div(workload.batch, report.sequence_groups);
  set_cache(model, kept, workload, report, notes);
  set_states(kept, workload, report);
  set_activations(model, kept, workload, report);
  set_totals(options.device, report);
  set_capacity(kept, workload, report);
  if (options.draws) set_layers(applied, model, classes, constants, report);
  return report;
}

}  // namespace shardtool::api
