#include "lib/api/planning/plan_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "lib/api/planning/kv_heads.h"
#include "lib/api/planning/live_widths.h"
#include "lib/api/planning/recurrent_states.h"
#include "lib/base/error.h"
#include "lib/plan/byte_count.h"
#include "lib/plan/weights.h"

namespace shardtool::api {
namespace {

constexpr int kDefaultBits = 16;  ///< of an activation

/// Tensors of one layout, class and width together: the work is per kind, not per tensor.
std::vector<plan::WeightGroup> weight_groups(const AppliedMapping& applied,
                                             mapping::TensorClasses& classes) {
  std::map<std::tuple<const layout::Layout*, int, int>, size_t> numbers;
  std::vector<plan::WeightGroup> groups;
  for (const mapping::ResolvedTensor& resolved : applied.resolution.tensors) {
    const TensorSpec& spec = applied.specs[resolved.tensor];
    const layout::Layout& layout = *resolved.layout;
    const std::tuple key(&layout, classes.of(spec.name), bits(spec.dtype));
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

/// Elements of the tensors' kind of numbers that training updates, on one device.
std::vector<i64> parameters_on(const AppliedMapping& applied, size_t n_devices) {
  std::vector<i64> parameters(n_devices, 0);
  for (const mapping::ResolvedTensor& resolved : applied.resolution.tensors) {
    const auto& ranks = resolved.layout->ranks();
    for (size_t h = 0; h < ranks.size(); ++h) {
      const auto region = resolved.layout->holders().region(static_cast<int>(h));
      parameters[static_cast<size_t>(ranks[h])] += image_size(region);
    }
  }
  return parameters;
}

/// The positions of an encoder that cross-attention caches of each sequence: those that config.json
/// fixes, else the prompt's. Nothing where nobody says.
i64 source_positions(const DeviceCaches& caches, const Workload& workload,
                     std::vector<std::string>& notes) {
  const bool crosses = std::any_of(caches.cross.begin(), caches.cross.end(),
                                   [](const auto& layers) { return !layers.empty(); });
  if (!crosses || caches.model.source_positions) return caches.model.source_positions.value_or(0);
  if (workload.prompt_len == 0 && workload.context > 0) {
    notes.emplace_back(
        "what attention to the encoder caches is not counted: --prompt-len says how many positions "
        "the encoder has");
  }
  return workload.prompt_len;
}

void set_cache(const DeviceCaches& caches, const Workload& workload, MemoryReport& report,
               std::vector<std::string>& notes) {
  const plan::CacheStore store{caches.bits, workload.block_tokens};
  const i64 sources = workload.context == 0 ? 0 : source_positions(caches, workload, notes);
  for (size_t rank = 0; rank < report.devices.size(); ++rank) {
    PlanDevice& device = report.devices[rank];
    device.kv_per_token = plan::kv_bytes_per_token(caches.layers[rank], store);
    device.kv =
        plan::times(plan::kv_bytes(caches.layers[rank], store, workload.context), workload.batch);
    device.cross_kv =
        plan::times(plan::kv_bytes(caches.cross[rank], {caches.bits, 1}, sources), workload.batch);
    plan::add_bytes(device.kv, device.cross_kv);
  }
}

/// Nothing where no workload is given.
void set_states(const RecurrentStates& states, const Workload& workload, MemoryReport& report,
                std::vector<std::string>& notes) {
  if (!states.why_not.empty()) {
    notes.push_back("the states of recurrences are not counted: " + states.why_not);
  }
  if (workload.context == 0) return;
  for (size_t rank = 0; rank < states.bytes.size(); ++rank) {
    report.devices[rank].states = plan::times(states.bytes[rank], workload.batch);
  }
}

void set_capacity(const DeviceCaches& caches, const Workload& workload, MemoryReport& report) {
  const plan::CacheStore store{caches.bits, workload.block_tokens};
  for (size_t rank = 0; rank < report.devices.size() && report.budget > 0; ++rank) {
    PlanDevice& device = report.devices[rank];
    if (device.kv_per_token == 0) continue;
    const i64 room = report.budget - (device.total - device.kv) - device.cross_kv;
    device.kv_capacity_tokens =
        plan::kv_capacity_tokens(caches.layers[rank], store, room, workload.context);
  }
}

void set_activations(const AppliedMapping& applied, const DeviceCaches& caches,
                     const Workload& workload, mapping::TensorClasses& classes,
                     MemoryReport& report) {
  if (workload.prompt_len == 0 && workload.context == 0) return;
  const auto widths = live_widths(applied, caches.model.hidden.value_or(0),
                                  caches.model.experts_per_token.value_or(1), classes);
  const i64 tokens = plan::times(workload.batch, std::max<i64>(1, workload.prompt_len));
  for (size_t rank = 0; rank < report.devices.size(); ++rank) {
    report.devices[rank].activations =
        plan::inference_activations(widths[rank], caches.bits, tokens, workload.batch);
  }
}

/// The state of training stands for the weights, too; beside it the layers' activations.
void set_training(const AppliedMapping& applied, const mapping::AttentionCache& model,
                  const TrainingPlan& training, MemoryReport& report,
                  std::vector<std::string>& notes) {
  const auto parameters = parameters_on(applied, report.devices.size());
  for (size_t rank = 0; rank < report.devices.size(); ++rank) {
    PlanDevice& device = report.devices[rank];
    device.training = plan::zero_state_bytes(parameters[rank], training.zero_stage,
                                             training.data_parallel, training.state);
  }
  if (training.sequence == 0) return;
  if (!model.heads || !model.n_layers || !model.hidden) {
    notes.emplace_back(
        "activations of training are not counted: no config.json says how many layers and heads "
        "there are, and how wide they are");
    return;
  }
  const bool has_tp = report.mesh.has_axis("tp");
  const double each = plan::training_activations_per_layer(
      {training.sequence, training.micro_batch, *model.hidden, *model.heads,
       has_tp ? report.mesh.axis("tp").size : 1, training.sequence_parallel, training.recompute});
  const i64 stages = report.mesh.has_axis("pp") ? report.mesh.axis("pp").size : 1;
  // One stage keeps the activations of as many micro-batches as there are stages: all layers'.
  const double kept = each * static_cast<double>(ceil_div(*model.n_layers, stages) * stages);
  for (PlanDevice& device : report.devices) device.activations = std::llround(kept);
}

/// Training state has weights of its own.
i64 weights_in_total(const PlanDevice& device) {
  return device.training > 0 ? 0 : device.weights;
}

void set_totals(const DeviceBudget& budget, MemoryReport& report) {
  report.budget = budget.bytes;
  if (budget.fraction < 1)
    report.budget = static_cast<i64>(static_cast<double>(budget.bytes) * budget.fraction);
  for (size_t rank = 0; rank < report.devices.size(); ++rank) {
    PlanDevice& device = report.devices[rank];
    device.overhead = budget.overhead_bytes;
    for (const i64 part : {weights_in_total(device), device.kv, device.states, device.activations,
                           device.training, device.overhead}) {
      plan::add_bytes(device.total, part);
    }
    if (report.budget > 0) device.fits = device.total <= report.budget;
    if (device.total > report.devices[report.fullest].total) report.fullest = rank;
  }
  const PlanDevice& fullest = report.devices[report.fullest];
  if (report.budget > 0) report.fits = fullest.fits;
  const std::pair<const char*, i64> parts[] = {
      {"weights", weights_in_total(fullest)}, {"kv cache", fullest.kv},
      {"recurrent states", fullest.states},   {"activations", fullest.activations},
      {"training state", fullest.training},   {"overhead", fullest.overhead}};
  const auto& largest =
      *std::max_element(std::begin(parts), std::end(parts),
                        [](const auto& a, const auto& b) { return a.second < b.second; });
  report.largest_part = largest.first;
  report.largest_bytes = largest.second;
}

}  // namespace

MemoryReport device_memory(const mapping::ModelConfig* config, const AppliedMapping& applied,
                           const PlanOptions& options, std::vector<std::string>& notes) {
  mapping::TensorClasses classes(options.classes);
  MemoryReport report;
  report.mesh = applied.resolution.mesh;
  report.classes = classes.names();
  for (const TensorSpec& spec : applied.specs) {
    plan::add_bytes(report.checkpoint_bytes, byte_size(spec.dtype, spec.shape).value_or(0));
  }
  set_weights(plan::device_weights(report.mesh.size(), static_cast<int>(report.classes.size()),
                                   weight_groups(applied, classes)),
              report);
  const DeviceCaches caches = device_caches(applied, config, options.workload.kv_dtype);
  if (options.training) {
    set_training(applied, caches.model, *options.training, report, notes);
  } else {
    notes.insert(notes.end(), caches.model.notes.begin(), caches.model.notes.end());
    set_cache(caches, options.workload, report, notes);
    const int bits = caches.model.dtype ? dtype_bits(*caches.model.dtype) : kDefaultBits;
    set_states(recurrent_states(config, options.graph, applied, bits), options.workload, report,
               notes);
    set_activations(applied, caches, options.workload, classes, report);
  }
  set_totals(options.device, report);
  if (!options.training) set_capacity(caches, options.workload, report);
  return report;
}

}  // namespace shardtool::api
