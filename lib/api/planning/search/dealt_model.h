#pragma once

#include <memory>
#include <vector>

#include "lib/api/planning/search/served_model.h"
#include "lib/api/planning/search/training_search.h"

namespace shardtool::api {

/// A model whose layers are dealt for so many virtual stages on every rank of a pipeline.
class DealtModel {
 public:
  /// Throws the errors of ServedModel.
  DealtModel(const TrainSearchOptions& options, i64 virtual_stages);

  const ServedModel& served() const { return served_; }
  i64 virtual_stages() const { return virtual_stages_; }

 private:
  i64 virtual_stages_;
  SearchOptions serving_;
  ServedModel served_;  // refers to serving_
};

/// Returns the model for each number of virtual stages to choose from.
std::vector<std::unique_ptr<DealtModel>> dealt_models(const TrainSearchOptions& options);

/// The layouts of one replica, and the model that they place.
struct DealtReplica {
  const std::vector<ServingLayout>& layouts;
  const DealtModel& model;
  i64 virtual_stages = 1;
};

/// Returns every replica with each model; those without a pipeline, whose ranks all have one stage,
/// with the first one. The arguments must outlive the result.
std::vector<DealtReplica> dealt_replicas(const std::vector<std::vector<ServingLayout>>& replicas,
                                         const std::vector<std::unique_ptr<DealtModel>>& models);

}  // namespace shardtool::api
