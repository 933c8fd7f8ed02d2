#include "lib/plan/training_step.h"

#include <algorithm>

namespace shardtool::plan {
namespace {

double again(const ForwardTimes& forward, Recompute recompute) {
  if (recompute == Recompute::kNone) return 0;
  if (recompute == Recompute::kSelective) return forward.attention;
  return forward.products + forward.collectives + forward.launches;
}

/// Returns the part of a collective that lasts longer than the pass beside it.
double beyond(double collective, double pass) {
  return std::max(0.0, collective - pass);
}

}  // namespace

double StepParts::total() const {
  return compute + recompute + collectives + replicas + launches + idle + optimizer;
}

StepParts& StepParts::operator+=(const StepParts& other) {
  compute += other.compute;
  recompute += other.recompute;
  collectives += other.collectives;
  replicas += other.replicas;
  launches += other.launches;
  idle += other.idle;
  optimizer += other.optimizer;
  return *this;
}

StepParts layer_step(const ForwardTimes& forward, const ReplicaTimes& replicas, Recompute recompute,
                     const StepShape& shape) {
  const auto times = static_cast<double>(shape.micro_batches);
  const double ahead = forward.products + forward.collectives + forward.launches;
  const double done_again = again(forward, recompute);
  const double back =
      2 * forward.products + forward.collectives + 2 * forward.launches + done_again;
  StepParts parts;
  parts.compute = times * 3 * forward.products;
  parts.recompute = times * done_again;
  parts.collectives = times * 2 * forward.collectives;
  parts.launches = times * 3 * forward.launches;
  parts.idle = static_cast<double>(shape.stages - 1) * (ahead + back);
  switch (shape.zero_stage) {
    case 0:
      parts.replicas = beyond(replicas.all_reduce, back);
      break;
    case 1:
      parts.replicas = beyond(replicas.reduce_scatter, back) + beyond(replicas.all_gather, ahead);
      break;
    case 2:
      parts.replicas =
          times * beyond(replicas.reduce_scatter, back) + beyond(replicas.all_gather, ahead);
      break;
    default:
      parts.replicas = times * (beyond(replicas.all_gather, ahead) +
                                beyond(replicas.all_gather + replicas.reduce_scatter, back));
  }
  return parts;
}

}  // namespace shardtool::plan
