#include "lib/api/planning/search/replica_prices.h"

#include <algorithm>

#include "lib/plan/collective/one_shot.h"

namespace shardtool::api {
namespace {

/// Most sequences of a replica at once under an open load, where memory holds more.
constexpr i64 kMostRunning = i64{1} << 20;

/// Adds a pass' time to the parts of an answer; compute hides the reads of weights, or they hide
/// it.
void add_parts(const model::Roofline& roof, double times, AnswerParts& parts) {
  const double work = roof.step_us - roof.comm_us - roof.launch_us;
  const double compute = work > roof.memory_us ? roof.compute_us : 0;
  parts.compute += times * compute;
  parts.memory += times * (work - compute);
  parts.collectives += times * roof.comm_us;
  parts.launches += times * roof.launch_us;
}

}  // namespace

model::Roofline step_in_engine(const model::PhasePrice& decode,
                               const plan::HardwareProfile& hardware) {
  model::Roofline step = *decode.roofline;
  const double others_us = step.step_us - step.comm_us - step.launch_us;
  step.comm_us = 0;
  for (const model::CommRow& row : decode.comm)
    step.comm_us += static_cast<double>(row.count) * plan::us_in_step(row.collective, hardware);
  step.launch_us *= plan::EngineOverheads().launch_factor;
  step.step_us = others_us + step.comm_us + step.launch_us;
  return step;
}

ReplicaPrices::ReplicaPrices(const SearchOptions& options, const ServedModel& model,
                             const PlacedReplica& replica, const ServingLayout& layout,
                             const std::string& kv_dtype)
    : options_(options),
      replica_(replica),
      stages_(layout.pp),
      has_experts_(model.limits().experts > 0),
      workload_(model.workload(replica, kv_dtype)) {}

std::optional<ServingRow> ReplicaPrices::priced(ServingRow row, i64 places) {
  const ServingLayout& layout = row.layout;
  const auto rate = options_.request_rate;
  if (rate) {
    const auto running = plan::running_at(*rate / static_cast<double>(layout.dp),
                                          answers(places, row.sequence_parallel));
    if (!running) return std::nullopt;
    row.concurrency = layout.dp * *running;
  }
  const i64 clients = ceil_div(row.concurrency, layout.dp);
  const i64 running = std::min(clients, places);
  const Passes priced = passes(running, row.sequence_parallel);
  row.service = service(clients, running, priced);
  row.parts = parts_of(row.service, priced);
  row.devices_per_client = static_cast<double>(layout.replica()) / static_cast<double>(clients);
  row.offer.devices = layout.devices();
  row.offer.ttft_us = row.service.ttft_us;
  if (row.service.later_tokens > 0) row.offer.tpot_us = row.service.tpot_us;
  row.offer.answer_us = row.service.answer_us();
  row.offer.tokens_per_s = row.service.tokens_per_s * static_cast<double>(layout.dp);
  const i64 emptier = layout.dp * clients - row.concurrency;  // replicas with a client less
  if (emptier > 0) {
    const i64 fewer = std::min(clients - 1, places);
    const auto of_fewer = service(clients - 1, fewer, passes(fewer, row.sequence_parallel));
    row.offer.tokens_per_s +=
        static_cast<double>(emptier) * (of_fewer.tokens_per_s - row.service.tokens_per_s);
  }
  const auto devices = static_cast<double>(layout.devices());
  row.offer.price_per_s = options_.plan.device.price_per_hour / kSecondsPerHour * devices;
  if (rate) {
    constexpr double kSecond = 1e6;  // in microseconds
    row.offer.tokens_per_s = *rate * static_cast<double>(options_.answer_len);
    row.devices_per_client = devices / (*rate * row.offer.answer_us / kSecond);
  }
  return row;
}

i64 ReplicaPrices::stride() const {
  return stages_ * replica_.pass->token_groups();
}

double ReplicaPrices::most_requests_per_s(i64 places, bool sequence_parallel) {
  return plan::most_requests_per_s(answers(places, sequence_parallel));
}

ReplicaPrices::Passes ReplicaPrices::passes(i64 running, bool sequence_parallel) {
  const i64 batches = std::min(running, stages_);
  const i64 larger = running % batches;
  const i64 together = std::min(replica_.pass->token_groups(), running);
  return {decode(running / batches), decode(ceil_div(running, batches)),
          static_cast<double>(larger) / static_cast<double>(batches),
          prefill(together, sequence_parallel), together};
}

plan::Service ReplicaPrices::service(i64 clients, i64 running, const Passes& passes) const {
  return plan::service_of(
      {options_.prompt_len, options_.answer_len, clients}, running,
      {passes.step_us(), passes.prompts.step_us, passes.together, stages_, has_experts_});
}

AnswerParts ReplicaPrices::parts_of(const plan::Service& service, const Passes& passes) const {
  AnswerParts parts;
  const auto later = static_cast<double>(service.later_tokens);
  add_parts(passes.smaller, later * (1 - passes.larger_share), parts);
  add_parts(passes.larger, later * passes.larger_share, parts);
  const double prompts = (service.others_us * later + service.prompt_us) / passes.prompts.step_us;
  add_parts(passes.prompts, prompts, parts);
  parts.host = service.request_us + service.host_us * later;
  parts.waiting = service.turn_us + service.queue_us;
  return parts;
}

plan::AnswerTimes ReplicaPrices::answers(i64 places, bool sequence_parallel) {
  return {std::min(places, kMostRunning), stride(), [this, sequence_parallel](i64 running) {
            return service(running, running, passes(running, sequence_parallel)).answer_us();
          }};
}

model::Roofline ReplicaPrices::decode(i64 batch) {
  auto& found = steps_[batch];
  if (!found) {
    workload_.batch = batch;
    workload_.sequence_parallel = false;
    const plan::HardwareProfile& hardware = *options_.plan.hardware;
    found = step_in_engine(replica_.pass->decode(workload_, &hardware), hardware);
  }
  return *found;
}

model::Roofline ReplicaPrices::prefill(i64 batch, bool sequence_parallel) {
  auto& found = prompts_[{batch, sequence_parallel}];
  if (!found) {
    workload_.batch = batch;
    workload_.sequence_parallel = sequence_parallel;
    found = replica_.pass->prefill(workload_, &*options_.plan.hardware).roofline;
  }
  return *found;
}

}  // namespace shardtool::api
