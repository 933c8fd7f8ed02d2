#include "lib/plan/pipeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tests/support/generators.h"

namespace shardtool::plan {
namespace {

using doctest::Approx;
using Stages = std::vector<PipelineStage>;

/// A pass that a stage has to do.
struct DuePass {
  bool is_back = false;
  i64 micro_batch = 0;
};

/// The passes of stage s of p in the order of 1F1B, as Megatron-LM writes them down.
std::vector<DuePass> order_of(i64 s, i64 p, i64 micro_batches) {
  const i64 warm_up = std::min(p - s - 1, micro_batches);
  std::vector<DuePass> order;
  for (i64 i = 0; i < warm_up; ++i) order.push_back({false, i});
  for (i64 i = warm_up; i < micro_batches; ++i) {
    order.push_back({false, i});
    order.push_back({true, i - warm_up});
  }
  for (i64 i = micro_batches - warm_up; i < micro_batches; ++i) order.push_back({true, i});
  return order;
}

/// Runs the passes of all stages one by one, each as soon as what it waits for has ended.
std::vector<double> simulated_ends(const Stages& stages, i64 micro_batches) {
  const i64 p = std::ssize(stages);
  const auto at = [&](bool is_back, i64 s, i64 i) {
    return static_cast<size_t>(((is_back ? p : 0) + s) * micro_batches + i);
  };
  std::vector<std::optional<double>> ended(static_cast<size_t>(2 * p * micro_batches));
  std::vector<std::vector<DuePass>> due;
  for (i64 s = 0; s < p; ++s) due.push_back(order_of(s, p, micro_batches));
  std::vector<size_t> done(stages.size());
  std::vector<double> free(stages.size());
  for (size_t left = ended.size(); left > 0;) {
    const size_t before = left;
    for (i64 s = 0; s < p; ++s) {
      const auto stage = static_cast<size_t>(s);
      if (done[stage] == due[stage].size()) continue;
      const auto [is_back, i] = due[stage][done[stage]];
      const i64 other = is_back ? s + 1 : s - 1;
      double begin = free[stage];
      if (other >= 0 && other < p) {
        const auto& end = ended[at(is_back, other, i)];
        if (!end) continue;
        begin = std::max(begin, *end + stages[static_cast<size_t>(std::min(s, other))].handoff);
      }
      free[stage] = begin + (is_back ? stages[stage].back : stages[stage].ahead);
      ended[at(is_back, s, i)] = free[stage];
      ++done[stage];
      --left;
    }
    REQUIRE(left < before);
  }
  return free;
}

/// Up to `most` stages; times are whole numbers, so that sums of them are exact.
Stages any_stages(i64 most) {
  Stages stages(static_cast<size_t>(*gen::between(1, most)));
  const i64 slowest = *gen::between(0, 12);
  const i64 handoff = *gen::between(0, 2) * slowest / 2;
  for (PipelineStage& stage : stages) {
    stage = {static_cast<double>(*gen::between(0, slowest)),
             static_cast<double>(*gen::between(0, 2 * slowest)),
             static_cast<double>(*gen::between(0, handoff)),
             static_cast<double>(*gen::between(0, slowest))};
  }
  return stages;
}

double last_end(const Stages& stages, i64 micro_batches) {
  return std::ranges::max(pipeline_ends(stages, micro_batches));
}

TEST_CASE("the recurrence has the ends of a simulation of every pass") {
  CHECK(rc::check("stages and micro-batches", [] {
    const Stages stages = any_stages(7);
    const i64 micro_batches = *gen::between(1, 60);
    const auto expected = simulated_ends(stages, micro_batches);
    const auto found = pipeline_ends(stages, micro_batches);
    RC_ASSERT(found.size() == expected.size());
    for (size_t s = 0; s < found.size(); ++s)
      RC_ASSERT(std::abs(found[s] - expected[s]) <= 1e-9 * expected[s]);
  }));
}

TEST_CASE("equal stages take m + p - 1 passes, of which (p - 1) / m are idle") {
  CHECK(rc::check("equal stages", [] {
    const i64 p = *gen::between(1, 12);
    const i64 m = *gen::between(1, 40);
    const auto ahead = static_cast<double>(*gen::between(1, 9));
    const auto back = static_cast<double>(*gen::between(1, 9));
    const Stages stages(static_cast<size_t>(p), {ahead, back});
    const auto passes = static_cast<double>(m + p - 1);
    RC_ASSERT(pipeline_us(stages, m) == passes * (ahead + back));
    const double work = static_cast<double>(m) * (ahead + back);
    const double idle = pipeline_us(stages, m) - work;
    RC_ASSERT(idle * static_cast<double>(m) == static_cast<double>(p - 1) * work);
  }));
}

TEST_CASE("no step is shorter than a stage's work, or than the way of one micro-batch") {
  CHECK(rc::check("stages and micro-batches", [] {
    const Stages stages = any_stages(8);
    const i64 micro_batches = *gen::between(1, 60);
    double way = 0;
    double work = 0;
    for (size_t s = 0; s < stages.size(); ++s) {
      const PipelineStage& stage = stages[s];
      way += stage.ahead + stage.back + (s + 1 < stages.size() ? 2 * stage.handoff : 0);
      work = std::max(work, static_cast<double>(micro_batches) * (stage.ahead + stage.back));
    }
    const double found = last_end(stages, micro_batches);
    RC_ASSERT(found >= way * (1 - 1e-9));
    RC_ASSERT(found >= work * (1 - 1e-9));
  }));
}

TEST_CASE("a stage that takes longer, and one more micro-batch, shorten no step") {
  CHECK(rc::check("stages and micro-batches", [] {
    Stages stages = any_stages(6);
    const i64 micro_batches = *gen::between(1, 60);
    const double before = pipeline_us(stages, micro_batches);
    RC_ASSERT(pipeline_us(stages, micro_batches + 1) >= before * (1 - 1e-9));
    PipelineStage& stage = stages[static_cast<size_t>(*gen::between(0, std::ssize(stages) - 1))];
    const auto time = *rc::gen::element(&PipelineStage::ahead, &PipelineStage::back,
                                        &PipelineStage::handoff, &PipelineStage::after);
    stage.*time += static_cast<double>(*gen::between(1, 9));
    RC_ASSERT(pipeline_us(stages, micro_batches) >= before * (1 - 1e-9));
  }));
}

TEST_CASE("a slow last stage delays the first one by its own passes alone") {
  // The last of two stages computes 3 + 6, the first 1 + 2: 4 micro-batches keep the last one busy
  // for 36, after one forward pass and before one backward pass of the first.
  const Stages stages{{1, 2}, {3, 6}};
  CHECK(pipeline_ends(stages, 4) == std::vector<double>{39, 37});
  CHECK(pipeline_us(Stages{{1, 2, 0, 5}, {3, 6, 0, 8}}, 4) == 45);
  // Each hand-over of 1 is met at the begin and at the end; between them the last stage waits for
  // none, since the first one is ahead of it.
  CHECK(pipeline_ends(Stages{{1, 2, 1}, {3, 6}}, 4) == std::vector<double>{41, 38});
}

TEST_CASE("a billion micro-batches take as long as the slowest stage each, at once") {
  constexpr i64 kBillion = 1'000'000'000;
  CHECK(last_end(Stages{{1, 2}, {3, 6}, {2, 2}}, kBillion) == Approx(9.0 * kBillion));
  // A stage that is slower by a ten-millionth shows itself only after so many micro-batches.
  const Stages close{{1, 2}, {10, 20}, {1, 29 + 3e-6}, {1, 2}};
  const double found = last_end(close, kBillion);
  CHECK(found >= (30 + 3e-6) * kBillion * (1 - 1e-10));
  CHECK(found == Approx((30 + 3e-6) * kBillion).epsilon(1e-8));
}

}  // namespace
}  // namespace shardtool::plan
