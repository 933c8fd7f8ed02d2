#pragma once

#include <string_view>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::tutorial {

enum class PipelineSchedule {
  kGpipe,  ///< all forward, then all backward; every microbatch is in flight at once
  k1F1B,   ///< as early as it can, one backward after each forward
};
/// "GPipe", "1F1B".
std::string_view to_string(PipelineSchedule schedule);

struct PipelineStep {
  bool is_forward = true;
  i64 microbatch = 0;

  bool operator==(const PipelineStep&) const = default;
};

/// What one stage does, in order. Both schedules take the backward passes in the order of the
/// microbatches, so that sums of gradients are the same bits.
std::vector<PipelineStep> pipeline_steps(PipelineSchedule schedule, i64 stages, i64 stage,
                                         i64 microbatches);

/// The most microbatches that have gone forward through a stage and not yet back:
/// m for GPipe, min(m, p - stage) for 1F1B.
i64 most_in_flight(PipelineSchedule schedule, i64 stages, i64 stage, i64 microbatches);

/// The share of its time that a stage waits, when all steps take the same time and messages none:
/// (p - 1) / (m + p - 1) for both.
double bubble(i64 stages, i64 microbatches);

}  // namespace shardtool::tutorial
