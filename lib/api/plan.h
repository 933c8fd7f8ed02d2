#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/inspect.h"
#include "lib/api/planning/cost_report.h"
#include "lib/api/planning/emit/emit_format.h"
#include "lib/api/transform.h"
#include "lib/mesh/mesh.h"
#include "lib/plan/activations.h"
#include "lib/plan/reshard.h"
#include "lib/plan/reshard_time.h"
#include "lib/plan/training.h"

namespace shardtool::model {
struct Graph;
}

namespace shardtool::api {

/// Limit on the size of a mesh, far above real use; a larger one is a typo.
inline constexpr i64 kMostDevices = 65'536;

/// Workload of the model.
struct Workload {
  i64 batch = 1;          ///< sequences
  i64 prompt_len = 0;     ///< prefill tokens per sequence; 0: one token
  i64 context = 0;        ///< cached tokens per sequence; 0: no cache is counted
  std::string kv_dtype;   ///< "bf16", "fp8", ...; empty: the model's dtype
  i64 block_tokens = 16;  ///< block size of a paged cache
  double prefix_hit = 0;  ///< share of a prompt's tokens that the cache has, from 0 to below 1
  /// Activations between matrices are cut by tokens over tp (Megatron's sequence parallelism).
  bool sequence_parallel = false;
};
/// Returns the number of a prompt's tokens that the cache has, given their share: prefix_hit *
/// prompt_len, rounded, and less than prompt_len, since a prefill computes at least one token.
/// Throws kUsage unless 0 <= prefix_hit < 1.
i64 cached_tokens(double prefix_hit, i64 prompt_len);

/// Resources of a device.
struct DeviceBudget {
  i64 bytes = 0;              ///< 0: not given
  double fraction = 1;        ///< usable fraction of `bytes`
  i64 overhead_bytes = 0;     ///< contexts, communicators, graphs; subtracted first
  double price_per_hour = 0;  ///< per device; 0: not given

  i64 usable_bytes() const {
    return fraction < 1 ? static_cast<i64>(static_cast<double>(bytes) * fraction) : bytes;
  }
  /// Throws kUsage for a fraction that is not above 0 and at most 1, and for an overhead that
  /// leaves nothing of the usable bytes.
  void check() const;
};

/// Training instead of serving: 16-bit weights and gradients, and an optimizer.
struct TrainingPlan {
  int zero_stage = 0;
  i64 data_parallel = 1;  ///< replicas of the mesh, over which the ZeRO stage partitions; weights
                          ///< other than experts also over the groups of the mesh's token axes
  plan::TrainingState state = plan::kAdam;
  i64 micro_batch = 1;
  i64 sequence = 0;  ///< tokens; 0: activations are not counted
  plan::Recompute recompute = plan::Recompute::kNone;
  /// Virtual stages of every rank of the pipeline, among which the mapping deals the layers
  /// (deal_layers).
  i64 virtual_stages = 1;
};

/// A user's memory class: a name and the glob of its tensors.
struct OwnClass {
  std::string name;
  std::string glob;
};

struct PlanOptions {
  std::vector<std::string> sources;
  MappingChoice mapping;          ///< the layout; default: the manifest's, or the preset's
  bool mapping_is_given = false;  ///< the reshard of an unsharded checkpoint starts at this layout
  std::shared_ptr<const model::Graph> graph;  ///< user's graph; null: the model family's
  std::optional<std::string> from;            ///< a mapping file or an entry of "layouts"
  std::optional<std::string> to;
  std::string to_preset;
  std::optional<mesh::Mesh> to_mesh;
  Workload workload;
  DeviceBudget device;
  std::optional<TrainingPlan> training;
  std::vector<OwnClass> classes;     ///< asked in order, before the built-in ones
  std::vector<i64> what_if;          ///< device counts
  std::vector<std::string> compare;  ///< mapping files or presets to compare with the chosen one
  i64 node_size = 8;                 ///< devices per node
  std::string explain;               ///< tensor whose transfers are listed
  std::optional<plan::HardwareProfile> hardware;  ///< without it there are no time estimates
  bool prices_forward = true;                     ///< report the collectives of a forward pass
  std::optional<EmitFormat> emit;  ///< also write the layout, or the reshard, for this program
  bool recipe = false;  ///< the plan will be applied: it starts at the source's own parts
  /// List the boxes of the reshard's transfers (plan::TransferBox).
  plan::Boxes boxes = plan::Boxes::kCounted;
  bool draws = false;  ///< also report what only pictures show: `drawings` and `memory.layers`

  bool is_reshard() const { return to || to_mesh || !to_preset.empty(); }
};

/// The memory of one device, in bytes.
struct PlanDevice {
  i64 rank = 0;
  i64 weights = 0;
  std::vector<i64> by_class;  ///< by index into MemoryReport::classes
  i64 replicated = 0;         ///< copies of data that a lower rank also has
  i64 padding = 0;
  i64 kv_per_token = 0;
  i64 kv = 0;                             ///< for the workload, including cross-attention
  i64 cross_kv = 0;                       ///< part of kv for the encoder's positions
  i64 states = 0;                         ///< recurrence states of the workload, independent of
                                          ///< length
  std::optional<i64> kv_capacity_tokens;  ///< tokens that fit the remaining budget
                                          ///< (plan/kv_cache.h)
  i64 activations = 0;
  i64 step_activations = 0;  ///< of one token of one sequence; not in the total
  /// Weights that are gathered for the largest layer, beside the stored ones; in training with
  /// their gradients.
  i64 gathered = 0;
  i64 training = 0;  ///< weights, gradients and optimizer; `weights` is then not in the total
  i64 overhead = 0;
  i64 total = 0;
  std::optional<bool> fits;
};

/// A change that would make the model fit, or its distance from the limit.
struct FitAdvice {
  std::string what;  ///< "devices", "weight bits", "memory fraction"
  std::string value;
  i64 total = 0;  ///< resulting bytes of the fullest device; 0 if not applicable
};

/// One line for another layout (--what-if and --compare).
struct LayoutRow {
  std::string name;  ///< "tp=8", or the mapping's name
  i64 devices = 0;
  i64 weights = 0;  ///< fullest device
  i64 kv = 0;
  i64 total = 0;
  std::optional<double> decode_us;  ///< lower bound of one step; with hardware
  std::optional<bool> fits;
  std::string refusal;  ///< reason if the layout is impossible, else empty
};

/// Weights of one layer on the fullest device.
struct LayerWeights {
  std::string layer;          ///< "start", "decoder 3", "end"; "other" for tensors that no op reads
  std::vector<i64> by_class;  ///< bytes, by index into MemoryReport::classes
};

struct MemoryReport {
  mesh::Mesh mesh;
  std::vector<std::string> classes;
  std::vector<PlanDevice> devices;
  i64 checkpoint_bytes = 0;  ///< all tensors, each once
  /// Groups of devices with sequences of their own: along axes of role "fsdp" and along those that
  /// distribute experts alone. Caches and activations are those of ceil(batch / groups) sequences.
  i64 sequence_groups = 1;
  i64 batch = 1;             ///< sequences of the workload, on all devices together
  size_t fullest = 0;        ///< index of the device with the largest total
  std::string largest_part;  ///< largest part of that device: "weights", "kv cache", ...
  i64 largest_bytes = 0;     ///< size of that part
  i64 budget = 0;            ///< usable bytes per device; 0: not given
  std::optional<bool> fits;
  std::vector<FitAdvice> advice;
  std::vector<LayoutRow> what_if;
  std::vector<LayoutRow> compare;
  std::vector<LayerWeights> layers;  ///< in the model's order; only with PlanOptions::draws
};

/// Memory of the busiest rank of a reshard while some of its tensors move one by one.
struct DrawnLevel {
  std::string tensor;  ///< the first of them
  i64 tensors = 0;
  plan::MemoryLevel bytes;
};

/// Contents of the pictures of a plan.
struct PlanDrawings {
  std::vector<DrawnRule> rules;       ///< of the layout, or of a reshard's destination
  i64 node_size = 1;                  ///< devices per node
  std::vector<plan::Transfer> pairs;  ///< bytes of all tensors by sender and receiver, ascending
  std::vector<DrawnLevel> levels;     ///< of a reshard, in its order; at most kMostLevels
};
/// Limit above which levels are joined, with the highest of those that are one.
inline constexpr size_t kMostLevels = 300;

/// Requests for the data of a source on object stores: without listings, headers and other files.
struct SourceReads {
  SourceRequests together;            ///< of one run for all ranks
  std::vector<SourceRequests> alone;  ///< of a run for each rank by itself, the first 256
  SourceRequests to_same_store;       ///< of one run for all ranks whose output is on that store
};

/// Replicas of the mesh in training.
struct PlannedReplicas {
  i64 number = 1;
  i64 devices = 1;  ///< of all replicas
  int zero_stage = 0;
};

struct PlanReport {
  std::string source;
  MemoryReport memory;  ///< of the layout, or of a reshard's destination
  /// Requests of a split or reshard to the layout; nullopt for a source on this machine.
  std::optional<SourceReads> reads;
  std::optional<plan::ReshardPlan> reshard;
  std::optional<plan::ReshardTime> reshard_time;  ///< with hardware
  std::vector<std::string> tensors;               ///< names, indexed by the reshard's tensor
                                                  ///< numbers
  std::optional<size_t> explained;                ///< the tensor selected by PlanOptions::explain
  std::string from;                               ///< "tp=4", "files"; empty without a reshard
  std::string to;
  std::optional<CostReport> cost;           ///< forward pass; not set for training
  std::optional<PlannedReplicas> replicas;  ///< in training
  /// Collectives in a step of training with one micro-batch (planning/plan_forward.h).
  std::vector<model::CommRow> training_comm;
  bool is_timed = false;                 ///< training_comm has times
  bool is_from_config = false;           ///< no weights were read: sizes are by config.json
  double price_per_hour = 0;             ///< all devices, those of all replicas in training
  std::optional<PlanDrawings> drawings;  ///< with PlanOptions::draws
  std::vector<std::string> warnings;
  /// Input of `reshard --plan` as one JSON object; empty unless requested.
  std::string recipe;
  std::string emitted;  ///< what PlanOptions::emit asks for

  /// Devices of the layout, in training those of all replicas.
  i64 devices() const { return replicas ? replicas->devices : memory.mesh.size(); }
};

/// Closes the document of a plan with a recipe for `reshard --plan`. `open_document` lacks its
/// closing brace; the seal is a hash of all preceding text.
std::string sealed(std::string open_document);

/// Computes the cost of a layout and of the reshard to it. Reads headers only, or config.json where
/// it stands alone. Throws the errors of opening a checkpoint and choosing a mapping, kUsage for an
/// invalid workload or budget and for a reshard of config.json alone, and with PlanOptions::emit
/// kUnsupported for a tensor that the program cannot express.
PlanReport make_plan(const PlanOptions& options);

}  // namespace shardtool::api
