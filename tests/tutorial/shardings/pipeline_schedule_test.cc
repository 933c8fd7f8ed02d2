#include "lib/tutorial/shardings/pipeline_schedule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "tests/support/generators.h"

using namespace shardtool;
using namespace shardtool::tutorial;

namespace {

constexpr PipelineSchedule kBoth[] = {PipelineSchedule::kGpipe, PipelineSchedule::k1F1B};

/// End time of the last stage if each step takes one unit of time and messages take none; -1 for a
/// deadlock.
i64 makespan(PipelineSchedule schedule, i64 stages, i64 microbatches) {
  std::vector<std::vector<PipelineStep>> left;
  for (i64 stage = 0; stage < stages; ++stage) {
    left.push_back(pipeline_steps(schedule, stages, stage, microbatches));
    std::reverse(left.back().begin(), left.back().end());
  }
  // Completion time of a microbatch at a stage.
  std::map<std::pair<i64, i64>, i64> forward;
  std::map<std::pair<i64, i64>, i64> backward;
  std::vector<i64> free_at(static_cast<size_t>(stages));
  const auto time_of = [](const auto& done, i64 stage, i64 microbatch) {
    const auto found = done.find({stage, microbatch});
    return found == done.end() ? i64{-1} : found->second;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (i64 stage = 0; stage < stages; ++stage) {
      if (left[stage].empty()) continue;
      const PipelineStep step = left[stage].back();
      i64 ready = 0;
      if (step.is_forward && stage > 0) ready = time_of(forward, stage - 1, step.microbatch);
      if (!step.is_forward) {
        ready = stage + 1 < stages ? time_of(backward, stage + 1, step.microbatch)
                                   : time_of(forward, stage, step.microbatch);
      }
      if (ready < 0) continue;
      free_at[stage] = std::max(free_at[stage], ready) + 1;
      (step.is_forward ? forward : backward)[{stage, step.microbatch}] = free_at[stage];
      left[stage].pop_back();
      moved = true;
    }
  }
  const bool all_done =
      std::all_of(left.begin(), left.end(), [](const auto& l) { return l.empty(); });
  return all_done ? *std::max_element(free_at.begin(), free_at.end()) : -1;
}

TEST_CASE("every microbatch goes forward once and then back once, both in order") {
  CHECK(rc::check("schedules are complete", [] {
    const i64 stages = *gen::between(1, 7);
    const i64 stage = *gen::between(0, stages - 1);
    const i64 microbatches = *gen::between(1, 12);
    for (const PipelineSchedule schedule : kBoth) {
      i64 forward = 0;
      i64 backward = 0;
      i64 most = 0;
      for (const PipelineStep& step : pipeline_steps(schedule, stages, stage, microbatches)) {
        i64& next = step.is_forward ? forward : backward;
        RC_ASSERT(step.microbatch == next);
        ++next;
        RC_ASSERT(backward <= forward);
        most = std::max(most, forward - backward);
      }
      RC_ASSERT(forward == microbatches);
      RC_ASSERT(backward == microbatches);
      RC_ASSERT(most == most_in_flight(schedule, stages, stage, microbatches));
    }
  }));
}

TEST_CASE("activations in flight are all microbatches, or with 1F1B at most what follows") {
  CHECK(most_in_flight(PipelineSchedule::kGpipe, 4, 0, 8) == 8);
  CHECK(most_in_flight(PipelineSchedule::k1F1B, 4, 0, 8) == 4);
  CHECK(most_in_flight(PipelineSchedule::k1F1B, 4, 3, 8) == 1);
  CHECK(most_in_flight(PipelineSchedule::k1F1B, 4, 0, 2) == 2);
}

TEST_CASE("no schedule locks up, and both wait for the share of time that the formula says") {
  // the bubble of a pipeline: p stages wait (p - 1) / (m + p - 1) of the time
  const auto bubble = [](i64 stages, i64 microbatches) {
    return static_cast<double>(stages - 1) / static_cast<double>(microbatches + stages - 1);
  };
  for (i64 stages = 1; stages <= 6; ++stages) {
    for (i64 microbatches = 1; microbatches <= 10; ++microbatches) {
      for (const PipelineSchedule schedule : kBoth) {
        const auto span = static_cast<double>(makespan(schedule, stages, microbatches));
        CHECK(1 - 2 * static_cast<double>(microbatches) / span ==
              doctest::Approx(bubble(stages, microbatches)));
      }
    }
  }
}

}  // namespace
