#pragma once

#include <optional>
#include <vector>

#include "lib/api/planning/search/trained_replica.h"
#include "lib/api/planning/search/training_search.h"

namespace shardtool::api {

inline constexpr double kStepUsPerSecond = 1e6;

/// Results of some layouts.
struct FoundTraining {
  TrainSearchReport report;
  double unlimited = 0;  ///< tokens per second and device of the best way in endless memory
  std::vector<std::optional<TrainingRow>> under;  ///< best row by smaller budget

  void add(FoundTraining more);
  void keep_better(size_t budget, std::optional<TrainingRow> row);
};

/// Prices the ways to train with one replica layout, which differ in dp and in what is no layout,
/// and adds them to `found`. Requires at least one layout.
void price_training(const TrainSearchOptions& options, const TrainedReplica& replica,
                    const std::vector<ServingLayout>& layouts, FoundTraining& found);

}  // namespace shardtool::api
