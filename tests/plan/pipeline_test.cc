#include "lib/plan/pipeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "tests/support/generators.h"

namespace shardtool::plan {
namespace {

using doctest::Approx;
using Stages = std::vector<PipelineStage>;

/// A pass that a rank has to do.
struct DuePass {
  bool is_back = false;
  i64 stage = 0;  ///< of all stages of the model
  i64 micro_batch = 0;
};

/// Numbers of a pipeline: p ranks, each with v stages, and m micro-batches.
struct PipelineShape {
  i64 p = 1;
  i64 v = 1;
  i64 m = 1;

  i64 passes() const { return m * v; }
  i64 warm_up(i64 rank) const {
    const i64 passes_before = v > 1 ? 2 * (p - rank - 1) + (v - 1) * p : p - rank - 1;
    return std::min(passes_before, passes());
  }
};

/// The k-th pass of a rank in one direction. Where stages are interleaved, a rank takes p
/// micro-batches through each of its stages in turn.
DuePass due_pass(const PipelineShape& of, i64 rank, i64 k, bool is_back) {
  if (of.v == 1) return {is_back, rank, k};
  const i64 in_turn = k % (of.p * of.v);
  const i64 ahead = in_turn / of.p;
  const i64 chunk = is_back ? of.v - 1 - ahead : ahead;
  return {is_back, chunk * of.p + rank, k / (of.p * of.v) * of.p + in_turn % of.p};
}

/// The passes of a rank in the order of 1F1B, as Megatron-LM writes them down.
std::vector<DuePass> order_of(const PipelineShape& of, i64 rank) {
  const i64 warm_up = of.warm_up(rank);
  std::vector<DuePass> order;
  for (i64 k = 0; k < warm_up; ++k) order.push_back(due_pass(of, rank, k, false));
  for (i64 k = warm_up; k < of.passes(); ++k) {
    order.push_back(due_pass(of, rank, k, false));
    order.push_back(due_pass(of, rank, k - warm_up, true));
  }
  for (i64 k = of.passes() - warm_up; k < of.passes(); ++k)
    order.push_back(due_pass(of, rank, k, true));
  return order;
}

/// Runs the passes of all ranks one by one, each as soon as what it waits for has ended.
std::vector<double> simulated_ends(const Stages& stages, const PipelineShape& of) {
  const i64 n_stages = std::ssize(stages);
  const auto at = [&](bool is_back, i64 s, i64 i) {
    return static_cast<size_t>(((is_back ? n_stages : 0) + s) * of.m + i);
  };
  std::vector<std::optional<double>> ended(static_cast<size_t>(2 * n_stages * of.m));
  std::vector<std::vector<DuePass>> due;
  for (i64 rank = 0; rank < of.p; ++rank) due.push_back(order_of(of, rank));
  std::vector<size_t> done(due.size());
  std::vector<double> free(due.size());
  for (size_t left = ended.size(); left > 0;) {
    const size_t before = left;
    for (size_t rank = 0; rank < due.size(); ++rank) {
      if (done[rank] == due[rank].size()) continue;
      const auto [is_back, s, i] = due[rank][done[rank]];
      const i64 other = is_back ? s + 1 : s - 1;
      double begin = free[rank];
      if (other >= 0 && other < n_stages) {
        const auto& end = ended[at(is_back, other, i)];
        if (!end) continue;
        begin = std::max(begin, *end + stages[static_cast<size_t>(std::min(s, other))].handoff);
      }
      const PipelineStage& stage = stages[static_cast<size_t>(s)];
      free[rank] = begin + (is_back ? stage.back : stage.ahead);
      ended[at(is_back, s, i)] = free[rank];
      ++done[rank];
      --left;
    }
    REQUIRE(left < before);
  }
  return free;
}

/// Up to 6 ranks with up to 5 stages each, and up to 8 turns of micro-batches.
PipelineShape any_interleaved() {
  const i64 p = *gen::between(2, 6);
  return {p, *gen::between(2, 5), p * *gen::between(1, 8)};
}

/// Times are whole numbers, so that sums of them are exact.
Stages any_times(i64 n_stages) {
  Stages stages(static_cast<size_t>(n_stages));
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

Stages any_stages(i64 most) {
  return any_times(*gen::between(1, most));
}

double last_end(const Stages& stages, i64 micro_batches) {
  return std::ranges::max(pipeline_ends(stages, micro_batches));
}

TEST_CASE("the recurrence has the ends of a simulation of every pass") {
  CHECK(rc::check("stages and micro-batches", [] {
    const Stages stages = any_stages(7);
    const i64 micro_batches = *gen::between(1, 60);
    const auto expected = simulated_ends(stages, {std::ssize(stages), 1, micro_batches});
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

TEST_CASE("the recurrence has the ends of a simulation of interleaved stages") {
  CHECK(rc::check("ranks, stages and micro-batches", [] {
    const PipelineShape of = any_interleaved();
    const Stages stages = any_times(of.p * of.v);
    const auto expected = simulated_ends(stages, of);
    const auto found = pipeline_ends(stages, of.m, of.v);
    RC_ASSERT(found.size() == expected.size());
    for (size_t rank = 0; rank < found.size(); ++rank)
      RC_ASSERT(std::abs(found[rank] - expected[rank]) <= 1e-9 * expected[rank]);
  }));
}

TEST_CASE("v equal stages on each rank leave (p - 1) / (m v) of its passes idle") {
  CHECK(rc::check("equal stages", [] {
    const PipelineShape of = any_interleaved();
    const auto ahead = static_cast<double>(*gen::between(1, 9));
    const auto back = static_cast<double>(*gen::between(1, 9));
    const Stages stages(static_cast<size_t>(of.p * of.v), {ahead, back});
    const auto work = static_cast<double>(of.m * of.v) * (ahead + back);
    const double idle = pipeline_us(stages, of.m, of.v) - work;
    RC_ASSERT(idle == static_cast<double>(of.p - 1) * (ahead + back));
    RC_ASSERT(idle * static_cast<double>(of.m * of.v) == static_cast<double>(of.p - 1) * work);
    // A rank's layers on one stage, v times as long, leave v times as much.
    const Stages plain(static_cast<size_t>(of.p),
                       {static_cast<double>(of.v) * ahead, static_cast<double>(of.v) * back});
    RC_ASSERT(pipeline_us(plain, of.m) - work == static_cast<double>(of.v) * idle);
  }));
}

TEST_CASE("what comes after the passes of a rank's stages comes after all of them") {
  const Stages stages{{1, 2, 0, 10}, {1, 2}, {1, 2, 0, 20}, {1, 2, 0, 4}};
  const auto ends = pipeline_ends(stages, 2, 2);
  CHECK(pipeline_us(stages, 2, 2) == ends[0] + 30);
}

/// Adds a pass to what is under way, or takes it away.
void follow(const DuePass& pass, const PipelineShape& of, std::vector<i64>& under_way) {
  under_way[static_cast<size_t>(pass.stage / of.p)] += pass.is_back ? -1 : 1;
}

i64 count_of(const std::vector<i64>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), i64{0});
}

TEST_CASE("a rank has as many micro-batches under way as a simulation of its passes says") {
  CHECK(rc::check("ranks, stages and micro-batches", [] {
    PipelineShape of = any_interleaved();
    if (*gen::between(0, 3) == 0) of.v = 1;
    const i64 rank = *gen::between(0, of.p - 1);
    std::vector<i64> under_way(static_cast<size_t>(of.v));
    std::vector<std::vector<i64>> moments;
    for (const DuePass& pass : order_of(of, rank)) {
      follow(pass, of, under_way);
      if (!moments.empty() && count_of(under_way) > count_of(moments.front())) moments.clear();
      const bool is_most = moments.empty() || count_of(under_way) == count_of(moments.front());
      const bool is_new = std::ranges::find(moments, under_way) == moments.end();
      if (is_most && is_new) moments.push_back(under_way);
    }
    auto found = most_under_way(of.p, rank, of.m, of.v);
    RC_ASSERT(count_of(found.front()) == std::min(of.warm_up(rank) + 1, of.passes()));
    std::ranges::sort(found);
    std::ranges::sort(moments);
    RC_ASSERT(found == moments);
  }));
}

TEST_CASE("the first of p ranks has (p - 1) / (p v) more under way than without interleaving") {
  // Korthikanti et al. 2022, arXiv 2205.05198, section 4.2.3: L (1 + (p - 1) / (p m)) layers.
  for (const i64 p : {2, 4, 8}) {
    for (const i64 v : {2, 3, 5}) {
      const i64 of_stages = count_of(most_under_way(p, 0, 4 * p, v).front());
      CHECK(of_stages == p * v + p - 1);
    }
  }
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

TEST_CASE("a billion micro-batches of interleaved stages take their simulated time, at once") {
  constexpr i64 kBillion = 1'000'000'000;
  const Stages stages{{1, 2, 1}, {3, 6, 0}, {2, 2, 3}, {1, 1}};
  const auto simulated = [&](i64 m) { return std::ranges::max(simulated_ends(stages, {2, 2, m})); };
  const double each = (simulated(80) - simulated(40)) / 40;
  CHECK(each == 11.5);
  CHECK(std::ranges::max(pipeline_ends(stages, kBillion, 2)) == Approx(each * kBillion));
  const Stages equal(8, {1, 2});
  CHECK(pipeline_us(equal, kBillion, 4) == 3.0 * (4.0 * kBillion + 1));
}

}  // namespace
}  // namespace shardtool::plan
