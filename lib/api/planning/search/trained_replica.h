#pragma once

#include <memory>
#include <vector>

#include "lib/api/planning/search/served_model.h"
#include "lib/api/planning/search/training_search.h"

namespace shardtool::api {

/// Parameters of one rank.
struct RankParameters {
  i64 all = 0;
  i64 largest_layer = 0;
};

/// One replica of a model in training: which stage has which layers, and what they take.
class TrainedReplica {
 public:
  /// Throws the errors of ServedModel::place.
  TrainedReplica(const ServedModel& model, const ServingLayout& layout);

  i64 stages() const { return stages_; }
  /// Layers of a stage, indices into those of the bound model.
  const std::vector<size_t>& layers(i64 stage) const { return layers_[static_cast<size_t>(stage)]; }
  /// The ranks of a stage.
  const std::vector<RankParameters>& ranks(i64 stage) const {
    return ranks_[static_cast<size_t>(stage)];
  }
  /// Parameters of a layer on the device that has most of them.
  i64 parameters(size_t layer) const { return parameters_[layer]; }
  /// True for the layers of a stack, which keep activations; false for embeddings and head.
  bool keeps_activations(size_t layer) const;
  /// Forward pass of every layer.
  std::vector<plan::ForwardTimes> forward(const TrainSearchOptions& options,
                                          const TrainingWay& way) const;
  /// Bytes of activations of one micro-batch and layer.
  double activations(const TrainSearchOptions& options, const TrainingWay& way,
                     plan::Recompute recompute) const;

 private:
  void add_tensors();
  void set_stages();

  std::unique_ptr<PlacedReplica> placed_;
  i64 tp_ = 1;
  i64 stages_ = 1;
  std::vector<std::vector<size_t>> layers_;
  std::vector<std::vector<RankParameters>> ranks_;
  std::vector<i64> parameters_;  ///< by layer
  std::vector<i64> first_rank_;  ///< by layer: a rank that holds its weights; -1: none does
};

}  // namespace shardtool::api
