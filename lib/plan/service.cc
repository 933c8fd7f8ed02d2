#include "lib/plan/service.h"

#include <algorithm>

#include "lib/plan/collective/time_table.h"

namespace shardtool::plan {

Service service_of(const ServiceLoad& load, i64 running, const PassTimes& times,
                   const EngineOverheads& overheads) {
  const auto sequences = static_cast<double>(running);
  const auto stages = static_cast<double>(times.stages);
  const auto tokens = static_cast<double>(load.answer_len);
  const double each = times.prompts_us / (static_cast<double>(times.together) * stages);
  Service service;
  service.running = running;
  service.later_tokens = load.answer_len - 1;
  service.step_us = times.step_us;
  service.host_us = overheads.sequence_us * sequences / stages;
  service.others_us = (sequences - 1) * each / tokens;
  service.tpot_us = service.step_us + service.host_us + service.others_us;
  service.request_us = overheads.request_us;
  service.prompt_us = overheads.prompt_factor * times.prompts_us;
  if (times.has_experts) service.prompt_us *= overheads.experts_factor;
  // The later tokens of a short answer meet few of the prompts that it must wait for.
  const double before = std::max(overheads.burst / 2, 1 / tokens);
  service.turn_us = times.step_us / 2 + before * (sequences - 1) * each;
  service.ttft_us = service.request_us + service.prompt_us + service.turn_us;
  service.tokens_per_s = sequences * tokens / service.answer_us() * kUsPerSecond;
  const auto waiting = static_cast<double>(load.concurrency - running);
  service.queue_us = waiting / sequences * service.answer_us();
  service.ttft_us += service.queue_us;
  return service;
}

}  // namespace shardtool::plan
