#include "lib/tutorial/shardings/pipeline_schedule.h"

#include <algorithm>

namespace shardtool::tutorial {

std::string_view to_string(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::kGpipe ? "GPipe" : "1F1B";
}

std::vector<PipelineStep> pipeline_steps(PipelineSchedule schedule, i64 stages, i64 stage,
                                         i64 microbatches) {
  std::vector<PipelineStep> steps;
  // Lead of the forward passes over the backward ones.
  const i64 ahead = most_in_flight(schedule, stages, stage, microbatches);
  i64 forward = 0;
  for (; forward < ahead; ++forward) steps.push_back({true, forward});
  for (i64 backward = 0; backward < microbatches; ++backward) {
    steps.push_back({false, backward});
    if (forward < microbatches) steps.push_back({true, forward++});
  }
  return steps;
}

i64 most_in_flight(PipelineSchedule schedule, i64 stages, i64 stage, i64 microbatches) {
  if (schedule == PipelineSchedule::kGpipe) return microbatches;
  return std::min(microbatches, stages - stage);
}

}  // namespace shardtool::tutorial
