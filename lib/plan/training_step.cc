#include "lib/plan/training_step.h"

#include <algorithm>

namespace shardtool::plan {
namespace {

/// Returns the time of a forward pass on the devices of its layer.
double forward_us(const ForwardTimes& forward) {
  return forward.products + forward.quantising + forward.collectives + forward.launches;
}

double again(const ForwardTimes& forward, Recompute recompute) {
  if (recompute == Recompute::kNone) return 0;
  return recompute == Recompute::kSelective ? forward.attention : forward_us(forward);
}

/// Returns the part of a collective that lasts longer than the pass beside it.
double beyond(double collective, double pass) {
  return std::max(0.0, collective - pass);
}

}  // namespace

double StepParts::total() const {
  return compute + recompute + collectives + replicas + launches + idle + optimizer;
}

void StepParts::fill_with_idle(double step_us) {
  constexpr double kRounding = 1e-9;  // above that of pipeline_us
  const double rest = step_us - busy();
  idle = rest > kRounding * step_us ? rest : 0;
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

PipelineStage layer_passes(const ForwardTimes& forward, const ReplicaTimes& replicas,
                           Recompute recompute, int zero_stage) {
  const double ahead = forward_us(forward);
  const double back = 2 * forward.products + forward.gradient_quantising + forward.collectives +
                      2 * forward.launches + again(forward, recompute);
  PipelineStage passes{ahead, back, forward.handoff, replicas.shared};
  switch (zero_stage) {
    case 0:
      passes.after += beyond(replicas.all_reduce, back);
      break;
    case 1:
      passes.after += beyond(replicas.reduce_scatter, back) + beyond(replicas.all_gather, ahead);
      break;
    case 2:
      passes.back += beyond(replicas.reduce_scatter, back);
      passes.after += beyond(replicas.all_gather, ahead);
      break;
    default:
      passes.ahead += beyond(replicas.all_gather, ahead);
      passes.back += beyond(replicas.all_gather + replicas.reduce_scatter, back);
  }
  return passes;
}

StepParts layer_step(const ForwardTimes& forward, const ReplicaTimes& replicas, Recompute recompute,
                     int zero_stage, i64 micro_batches) {
  const auto times = static_cast<double>(micro_batches);
  const PipelineStage alone = layer_passes(forward, {}, recompute, zero_stage);
  const PipelineStage passes = layer_passes(forward, replicas, recompute, zero_stage);
  StepParts parts;
  parts.compute = times * (3 * forward.products + forward.quantising + forward.gradient_quantising);
  parts.recompute = times * again(forward, recompute);
  parts.collectives = times * 2 * forward.collectives;
  parts.launches = times * 3 * forward.launches;
  parts.replicas = times * (passes.ahead - alone.ahead + passes.back - alone.back) + passes.after;
  return parts;
}

}  // namespace shardtool::plan
