#pragma once

#include <string>
#include <vector>

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/plan.h"
#include "lib/api/planning/planned_model.h"

namespace shardtool::api {

/// Sets the training state of every device, which includes its weights, and the activations that
/// its layers and the head keep (plan/activations.h), of as many micro-batches as the first
/// pipeline stage has under way. Adds a note if the model has none that are known. Requires
/// options.training. Throws what virtual_stages_of throws.
void set_training(const AppliedMapping& applied, const PlannedModel& model,
                  const PlanOptions& options, MemoryReport& report,
                  std::vector<std::string>& notes);

}  // namespace shardtool::api
