#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lib/api/planning/search/served_model.h"
#include "lib/api/planning/search/training_search.h"
#include "lib/api/planning/trained_parameters.h"

namespace shardtool::api {

/// One replica of a model in training: which stage has which layers, and what they take.
class TrainedReplica {
 public:
  /// Throws the errors of ServedModel::place, and those of virtual_stages_of.
  TrainedReplica(const ServedModel& model, const ServingLayout& layout, i64 virtual_stages = 1);

  i64 stages() const { return stages_; }
  i64 virtual_stages() const { return virtual_stages_; }
  /// Which of its stage's virtual stages a layer is in: 0 to virtual_stages() - 1.
  size_t virtual_stage(size_t layer) const { return virtual_stage_[layer]; }
  /// Layers of a stage, indices into those of the bound model.
  const std::vector<size_t>& layers(i64 stage) const { return layers_[static_cast<size_t>(stage)]; }
  /// Ranks of the replica: those of a stage are consecutive.
  i64 ranks_per_stage() const { return ranks_per_stage_; }
  /// Number of groups of devices that have sequences of their own.
  i64 token_groups() const { return placed_->pass->token_groups(); }
  const TrainedParameters& parameters_on(i64 rank) const {
    return parameters_.ranks[static_cast<size_t>(rank)];
  }
  const PlacedParameters& parameters() const { return parameters_; }
  /// Returns, for each number of replicas and by rank, the bytes of weights that ZeRO 3 gathers for
  /// the largest layer.
  std::vector<std::vector<i64>> gathered(std::span<const i64> replicas) const;
  /// Parameters of a layer on the device that has most of them.
  const TrainedParameters& parameters(size_t layer) const { return parameters_.layers[layer]; }
  /// True for the layers of a stack, which keep activations; false for embeddings and head.
  bool keeps_activations(size_t layer) const;
  bool is_head(size_t layer) const;
  /// Forward pass of every layer, with a micro-batch of each group.
  std::vector<plan::ForwardTimes> forward(const TrainSearchOptions& options,
                                          const TrainingWay& way) const;
  /// Returns, by layer, the bytes of activations of one micro-batch on the device that keeps most.
  /// For the head they are plan::training_head_activations.
  std::vector<double> activations(const TrainSearchOptions& options, const TrainingWay& way,
                                  plan::Recompute recompute) const;
  /// Returns, by layer, plan::recomputed_activations of full recomputation.
  std::vector<double> recomputed(const TrainSearchOptions& options, const TrainingWay& way) const;

 private:
  plan::TrainedLayer trained_layer(const TrainSearchOptions& options, const TrainingWay& way,
                                   size_t layer, plan::Recompute recompute) const;
  void set_stages();
  void set_kept();

  std::unique_ptr<PlacedReplica> placed_;
  model::StackSizes sizes_;
  std::vector<i64> kept_;  ///< by layer, the most of model::kept_widths
  i64 tp_ = 1;
  i64 ranks_per_stage_ = 1;
  i64 stages_ = 1;
  i64 virtual_stages_ = 1;
  std::vector<size_t> virtual_stage_;  ///< by layer
  std::vector<std::vector<size_t>> layers_;
  PlacedParameters parameters_;
};

}  // namespace shardtool::api
