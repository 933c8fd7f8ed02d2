#pragma once

#include <optional>
#include <vector>

#include "lib/api/planning/search/training_search.h"

namespace shardtool::api {

/// Sets what follows from the rows of a report: the optimum, the runner-up and the losses.
void choose(TrainSearchReport& report);

/// Keeps of the best rows under ascending budgets those that are faster than all before.
std::vector<TrainingRow> front_of(const std::vector<std::optional<TrainingRow>>& under);

}  // namespace shardtool::api
