#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/planning/plan_cost.h"
#include "lib/api/transform.h"
#include "lib/mapping/tensor_classes.h"
#include "lib/mesh/mesh.h"
#include "lib/plan/activations.h"
#include "lib/plan/reshard.h"
#include "lib/plan/reshard_time.h"
#include "lib/plan/training.h"

namespace shardtool::api {

/// More devices than anybody has under one mesh: a larger one is a slip.
inline constexpr i64 kMostDevices = 65'536;

/// What the model is asked to do at one time.
struct Workload {
  i64 batch = 1;          ///< sequences
  i64 prompt_len = 0;     ///< tokens that go through the model at once, per sequence; 0: one token
  i64 context = 0;        ///< tokens that every sequence caches; 0: none is counted
  std::string kv_dtype;   ///< "bf16", "fp8", ...; empty: the model's own
  i64 block_tokens = 16;  ///< of a paged cache
};

/// What a device has.
struct DeviceBudget {
  i64 bytes = 0;              ///< 0: not given
  double fraction = 1;        ///< of `bytes` that may be used
  i64 overhead_bytes = 0;     ///< contexts, communicators, graphs: taken before anything else
  double price_per_hour = 0;  ///< of one device; 0: not given
};

/// Training instead of serving: 16-bit weights and gradients, and an optimizer.
struct TrainingPlan {
  int zero_stage = 0;
  i64 data_parallel = 1;  ///< devices over which the stage partitions
  plan::TrainingState state = plan::kAdam;
  i64 micro_batch = 1;
  i64 sequence = 0;  ///< tokens; 0: no activations are counted
  bool sequence_parallel = false;
  plan::Recompute recompute = plan::Recompute::kNone;
};

struct PlanOptions {
  std::vector<std::string> sources;
  MappingChoice mapping;  ///< the layout; nothing chosen: the manifest's, or the preset's
  bool mapping_is_given =
      false;  ///< of a whole checkpoint: it is the layout that a reshard begins at
  std::shared_ptr<const model::Graph> graph;  ///< of one's own; null: of the model's family
  std::optional<std::string> from;            ///< a mapping file or an entry of "layouts"
  std::optional<std::string> to;
  std::string to_preset;
  std::optional<mesh::Mesh> to_mesh;
  Workload workload;
  DeviceBudget device;
  std::optional<TrainingPlan> training;
  std::vector<mapping::OwnClass> classes;
  std::vector<i64> what_if;          ///< numbers of devices
  std::vector<std::string> compare;  ///< mapping files or presets, beside the chosen one
  i64 node_size = 8;                 ///< devices of one node
  std::string explain;               ///< a tensor whose transfers are listed
  std::optional<plan::HardwareProfile> hardware;  ///< without it nothing has a time
  bool prices_forward = true;  ///< whether the report has the collectives of a forward pass
  bool recipe = false;         ///< the plan is to be applied: it begins at the source's own parts

  bool is_reshard() const { return to || to_mesh || !to_preset.empty(); }
};

/// The memory of one device, in bytes.
struct PlanDevice {
  i64 rank = 0;
  i64 weights = 0;
  std::vector<i64> by_class;  ///< of MemoryReport::classes
  i64 replicated = 0;         ///< copies of what a lower rank has, too
  i64 padding = 0;
  i64 kv_per_token = 0;
  i64 kv = 0;                             ///< of the workload, that of cross-attention with it
  i64 cross_kv = 0;                       ///< of kv, the encoder's positions
  i64 states = 0;                         ///< of the workload's recurrences, however long
  std::optional<i64> kv_capacity_tokens;  ///< what the budget leaves room for (plan/kv_cache.h)
  i64 activations = 0;
  i64 training = 0;  ///< weights, gradients and optimizer; then `weights` is not in the total
  i64 overhead = 0;
  i64 total = 0;
  std::optional<bool> fits;
};

/// Something that would make the model fit, or how far it is from not fitting.
struct FitAdvice {
  std::string what;  ///< "devices", "weight bits", "memory fraction"
  std::string value;
  i64 total = 0;  ///< bytes of the fullest device then; 0 where it does not apply
};

/// Another layout in one line: of --what-if and --compare.
struct LayoutRow {
  std::string name;  ///< "tp=8", or the mapping's
  i64 devices = 0;
  i64 weights = 0;  ///< of the fullest device
  i64 kv = 0;
  i64 total = 0;
  std::optional<double> decode_us;  ///< of one step, at least; with hardware
  std::optional<bool> fits;
  std::string refusal;  ///< why there is no such layout; else empty
};

struct MemoryReport {
  mesh::Mesh mesh;
  std::vector<std::string> classes;
  std::vector<PlanDevice> devices;
  i64 checkpoint_bytes = 0;  ///< of all tensors, each once
  size_t fullest = 0;        ///< the device with the largest total
  std::string largest_part;  ///< of that device: "weights", "kv cache", ...
  i64 largest_bytes = 0;     ///< of that part
  i64 budget = 0;            ///< bytes that one device may use; 0: not given
  std::optional<bool> fits;
  std::vector<FitAdvice> advice;
  std::vector<LayoutRow> what_if;
  std::vector<LayoutRow> compare;
};

struct PlanReport {
  std::string source;
  MemoryReport memory;  ///< of the layout; of a reshard's destination
  std::optional<plan::ReshardPlan> reshard;
  std::optional<plan::ReshardTime> reshard_time;  ///< with hardware
  std::vector<std::string> tensors;               ///< names, in the order of the reshard's numbers
  std::optional<size_t> explained;                ///< the tensor whose transfers were asked for
  std::string from;                               ///< "tp=4", "files"; empty without a reshard
  std::string to;
  std::optional<CostReport> cost;  ///< of a forward pass; not of training
  double price_per_hour = 0;       ///< of all devices
  std::vector<std::string> warnings;
  /// What `reshard --plan` needs, as one JSON object; empty unless it was asked for.
  std::string recipe;
};

/// The document of a plan, without its closing brace and with a recipe in it, as `reshard --plan`
/// reads it: closed by a seal, the hash of all that comes before it.
std::string sealed(std::string open_document);

/// What a layout costs, and what it takes to get there. Reads headers only. Throws what opening a
/// checkpoint and choosing a mapping throw, and kUsage for a workload or a budget that cannot be.
PlanReport make_plan(const PlanOptions& options);

}  // namespace shardtool::api
