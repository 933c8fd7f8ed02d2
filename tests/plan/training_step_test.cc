#include "lib/plan/training_step.h"

#include <doctest/doctest.h>

namespace shardtool::plan {
namespace {

using doctest::Approx;

constexpr ForwardTimes kForward{100, 30, 10, 5};
constexpr double kAhead = 115;
constexpr double kBack = 220;

double replicas_of(int zero, const ReplicaTimes& replicas, i64 micro_batches) {
  return layer_step(kForward, replicas, Recompute::kNone, zero, micro_batches).replicas;
}

TEST_CASE("a pass is three times the products, and recompute repeats what it drops") {
  const StepParts none = layer_step(kForward, {}, Recompute::kNone, 0, 4);
  CHECK(none.compute == 4 * 300);
  CHECK(none.collectives == 4 * 20);
  CHECK(none.launches == 4 * 15);
  CHECK(none.recompute == 0);
  CHECK(none.idle == 0);
  CHECK(none.total() == Approx(4 * (kAhead + kBack)));
  CHECK(layer_step(kForward, {}, Recompute::kSelective, 0, 4).recompute == 4 * 30);
  CHECK(layer_step(kForward, {}, Recompute::kFull, 0, 4).recompute == 4 * kAhead);
}

TEST_CASE("each pass quantises once, and a full recomputation quantises its inputs again") {
  ForwardTimes forward = kForward;
  forward.quantising = 7;
  forward.gradient_quantising = 11;
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    const double again = recompute == Recompute::kFull ? 7 : 0;
    const PipelineStage before = layer_passes(kForward, {}, recompute, 0);
    const PipelineStage after = layer_passes(forward, {}, recompute, 0);
    CHECK(after.ahead == Approx(before.ahead + 7));
    CHECK(after.back == Approx(before.back + 11 + again));
    const StepParts parts = layer_step(forward, {}, recompute, 0, 4);
    CHECK(parts.compute == Approx(4 * (300 + 7 + 11)));
    CHECK(parts.total() == Approx(4 * (after.ahead + after.back)));
  }
}

TEST_CASE("a stage works for its passes and for what comes after them") {
  const ReplicaTimes replicas{900, 700, 800, 40};
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    for (const int zero : {0, 1, 2, 3}) {
      const PipelineStage passes = layer_passes(kForward, replicas, recompute, zero);
      CHECK(layer_step(kForward, replicas, recompute, zero, 4).total() ==
            Approx(4 * (passes.ahead + passes.back) + passes.after));
    }
  }
}

TEST_CASE("the rest of a step is idle, unless rounding explains it") {
  StepParts parts{.compute = 70, .launches = 20, .optimizer = 0.1};
  parts.fill_with_idle(100);
  CHECK(parts.idle == Approx(9.9));
  CHECK(parts.total() == Approx(100));
  for (const double times : {1 - 1e-12, 1.0, 1 + 1e-12}) {
    parts.fill_with_idle(parts.busy() * times);
    CHECK(parts.idle == 0);
  }
}

TEST_CASE("a full recomputation repeats no hand-over") {
  ForwardTimes forward = kForward;
  forward.handoff = 50;
  const PipelineStage passes = layer_passes(forward, {}, Recompute::kFull, 0);
  CHECK(passes.ahead == kAhead);
  CHECK(passes.back == kBack + kAhead);
  CHECK(passes.handoff == 50);
  CHECK(passes.after == 0);
}

TEST_CASE("collectives among replicas cost what the passes beside them do not hide") {
  CHECK(replicas_of(0, {kBack, 0, 0}, 4) == 0);
  CHECK(replicas_of(0, {kBack + 7, 0, 0}, 4) == Approx(7));
  CHECK(replicas_of(1, {900, kAhead + 2, kBack + 3}, 4) == Approx(5));
  CHECK(replicas_of(2, {900, kAhead + 2, kBack + 3}, 4) == Approx(2 + 4 * 3));
  // The backward pass gathers the weights once more.
  CHECK(replicas_of(3, {900, kAhead + 2, kBack}, 4) == Approx(4 * (2 + kAhead + 2)));
  // Nothing hides the sum of the gradients of weights that several stages have.
  CHECK(replicas_of(0, {kBack, 0, 0, 9}, 4) == Approx(9));
}

}  // namespace
}  // namespace shardtool::plan
