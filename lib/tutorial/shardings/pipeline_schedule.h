#pragma once

#include <string_view>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::tutorial {

enum class PipelineSchedule {
  kGpipe,  ///< all forward, then all backward; every microbatch is in flight at once
  k1F1B,   ///< as early as possible, one backward after each forward
};
/// "GPipe", "1F1B".
std::string_view to_string(PipelineSchedule schedule);

struct PipelineStep {
  bool is_forward = true;
  i64 microbatch = 0;

  bool operator==(const PipelineStep&) const = default;
};

/// Returns the steps of one stage in order. Both schedules run the backward passes in microbatch
/// order, so that sums of gradients have the same bits.
std::vector<PipelineStep> pipeline_steps(PipelineSchedule schedule, i64 stages, i64 stage,
                                         i64 microbatches);

/// Maximum number of microbatches between their forward and backward pass on a stage: m for GPipe,
/// min(m, p - stage) for 1F1B.
i64 most_in_flight(PipelineSchedule schedule, i64 stages, i64 stage, i64 microbatches);

}  // namespace shardtool::tutorial
