#include "lib/plan/training_step.h"

#include <doctest/doctest.h>

namespace shardtool::plan {
namespace {

using doctest::Approx;

constexpr ForwardTimes kForward{100, 30, 10, 5};
constexpr double kAhead = 115;
constexpr double kBack = 220;

double replicas_of(int zero, const ReplicaTimes& replicas, i64 micro_batches) {
  return layer_step(kForward, replicas, Recompute::kNone, {micro_batches, 1, zero}).replicas;
}

TEST_CASE("a pass is three times the products, and recompute repeats what it drops") {
  const StepShape shape{4, 1, 0};
  const StepParts none = layer_step(kForward, {}, Recompute::kNone, shape);
  CHECK(none.compute == 4 * 300);
  CHECK(none.collectives == 4 * 20);
  CHECK(none.launches == 4 * 15);
  CHECK(none.recompute == 0);
  CHECK(none.idle == 0);
  CHECK(none.total() == Approx(4 * (kAhead + kBack)));
  CHECK(layer_step(kForward, {}, Recompute::kSelective, shape).recompute == 4 * 30);
  CHECK(layer_step(kForward, {}, Recompute::kFull, shape).recompute == 4 * kAhead);
}

TEST_CASE("a pipeline idles for a pass per further stage") {
  const StepParts parts = layer_step(kForward, {}, Recompute::kNone, {4, 3, 0});
  CHECK(parts.idle == 2 * (kAhead + kBack));
  CHECK(layer_step(kForward, {}, Recompute::kFull, {4, 3, 0}).idle == 2 * (2 * kAhead + kBack));
}

TEST_CASE("collectives among replicas cost what the passes beside them do not hide") {
  CHECK(replicas_of(0, {kBack, 0, 0}, 4) == 0);
  CHECK(replicas_of(0, {kBack + 7, 0, 0}, 4) == Approx(7));
  CHECK(replicas_of(1, {900, kAhead + 2, kBack + 3}, 4) == Approx(5));
  CHECK(replicas_of(2, {900, kAhead + 2, kBack + 3}, 4) == Approx(2 + 4 * 3));
  // The backward pass gathers the weights once more.
  CHECK(replicas_of(3, {900, kAhead + 2, kBack}, 4) == Approx(4 * (2 + kAhead + 2)));
}

}  // namespace
}  // namespace shardtool::plan
