#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/plan_search.h"
#include "lib/plan/training_step.h"

namespace shardtool::api {

struct TrainSearchOptions {
  /// Uses the one source, the mapping, graph, device and hardware, which must be set.
  PlanOptions plan;
  PinnedSizes pinned;
  std::vector<i64> devices;           ///< numbers of devices to choose from
  i64 sequence = 0;                   ///< tokens
  i64 batch = 0;                      ///< sequences of one step, on all devices together
  std::vector<i64> micro_batches{1};  ///< TrainingWay::micro_batch, to choose from
  std::vector<i64> zero_stages{0, 1, 2, 3};
  std::vector<i64> virtual_stages{1};  ///< TrainingWay::virtual_stages of pipelines, to choose from
  std::vector<plan::Recompute> recomputes{plan::Recompute::kNone, plan::Recompute::kSelective,
                                          plan::Recompute::kFull};
  plan::TrainingState state = plan::kAdam;
  bool sequence_parallel = false;  ///< try activations that are cut by tokens over tp, too
  /// Smaller budgets of a device, in bytes, ascending: the best row under each is on the front.
  std::vector<i64> smaller_budgets;
};

/// A way to train, but for what each layer recomputes.
struct TrainingWay {
  ServingLayout layout;
  i64 zero_stage = 0;
  i64 micro_batch = 1;  ///< sequences that a replica, or each of its ep groups, computes at once
  bool sequence_parallel = false;
  i64 virtual_stages = 1;  ///< of every rank of the pipeline

  bool operator==(const TrainingWay&) const = default;
};
/// "dp=8 pp=2 tp=4 zero=1"; with " virtual-stages=2", " micro-batch=2" and " sequence-parallel" if
/// they are not 1 and false.
std::string to_string(const TrainingWay& way);

/// All parts of a step's time, in the order of reports.
inline constexpr TimePart<plan::StepParts> kStepParts[] = {
    {"compute_ms", "compute", &plan::StepParts::compute},
    {"recompute_ms", "recompute", &plan::StepParts::recompute},
    {"collectives_ms", "collectives of activations", &plan::StepParts::collectives},
    {"replicas_ms", "collectives among replicas", &plan::StepParts::replicas},
    {"launches_ms", "kernel launches", &plan::StepParts::launches},
    {"idle_ms", "idle stages", &plan::StepParts::idle},
    {"optimizer_ms", "the optimizer", &plan::StepParts::optimizer}};

/// A rank of the pipeline, with all of its virtual stages: the memory of its fullest device, and
/// what its layers recompute.
struct TrainedStage {
  std::array<i64, 3> layers{};  ///< numbers of layers, by plan::Recompute
  i64 state = 0;                ///< bytes of weights, gradients and optimizer
  i64 gathered = 0;             ///< bytes of the largest layer that ZeRO 3 gathers, with gradients
  i64 activations = 0;          ///< bytes of the micro-batches under way
  i64 total = 0;                ///< bytes, with the overhead
  plan::StepParts parts;        ///< of a step, all of which the stage works or is idle
};

struct TrainingRow {
  TrainingWay way;
  i64 micro_batches = 1;             ///< of one replica and step
  std::vector<TrainedStage> stages;  ///< in order
  size_t slowest = 0;                ///< index into stages: the one that works longest
  size_t fullest = 0;                ///< index into stages
  double step_us = 0;
  double tokens_per_s = 0;  ///< of all devices

  double tokens_per_s_per_device() const;
};

/// A way to train that is not possible.
struct RefusedTraining {
  TrainingWay way;
  std::string constraint;  ///< "cut", "memory", "batch" or "model"
  std::string reason;
};

/// Reason for which a row lost against the optimum.
struct TrainingLoss {
  size_t row = 0;
  double by = 0;       ///< fraction of the optimum's tokens per second and device
  std::string reason;  ///< the part of a step that grew most, in words
};

struct TrainSearchReport {
  std::vector<TrainingRow> rows;
  std::vector<RefusedTraining> refused;
  std::optional<size_t> optimum;     ///< index into rows; nullopt: nothing fits
  std::optional<size_t> runner_up;   ///< the best row with another way
  double value = 0;                  ///< tokens per second and device of the optimum
  double bound = 0;                  ///< that no way can exceed: products alone, nothing else
  std::vector<TrainingLoss> losses;  ///< the best row of every other layout on as many devices
  /// Best rows by memory: under each smaller budget, and the optimum. Ascending in bytes of the
  /// fullest device and in tokens per second and device.
  std::vector<TrainingRow> front;
  /// By what the best way would be faster if memory had no limit; 0 if it is the optimum.
  double memory_costs = 0;
  std::vector<std::string> warnings;
};

/// Returns a report of the rows that its fields name, at most `most` of the losses, with their
/// indices in it.
TrainSearchReport with_named_rows(const TrainSearchReport& report, size_t most);

/// Prices every way to train: dp x pp x ep x tp, ZeRO stages, micro-batches and, for every layer,
/// what it recomputes, which an exact program chooses for each stage under the memory of its
/// devices (plan::fastest_ways). The groups along ep have sequences of their own and are replicas
/// of all weights but experts: ZeRO partitions experts over dp, and other weights over dp and ep.
/// Weights, gradients and optimizer are exact, from headers; activations are those of
/// plan::training_activations_per_layer with model::kept_widths, for as many micro-batches as a
/// stage has under way in a 1F1B schedule, and of one micro-batch those of the head, or later of a
/// layer that computes all again. Where every stage of a pipeline has both ends of the model, as
/// with presets, the first one trains the embeddings, the last one the head, and both of them tied
/// weights (count_parameters).
///
/// A step takes plan::pipeline_us of the stages, in which hand-overs delay the next stage. The
/// layers of a stage recompute what takes least time in a pipeline of stages like it. A stage with
/// layers of an encoder and of a decoder does both in one pass. With virtual stages the schedule
/// is interleaved 1F1B, and the layers that the mapping calls "layers" are dealt to the ranks so
/// (deal_layers), which needs a multiple of pp micro-batches. What layers recompute then fits at
/// every moment, and need not be the fastest choice (plan::fitting_ways).
/// Throws the errors of opening a checkpoint; kUsage for more than one source, for an impossible
/// batch, for hardware that is not set, and for a model without a price.
TrainSearchReport search_training(const TrainSearchOptions& options);

}  // namespace shardtool::api
