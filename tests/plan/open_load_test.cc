#include "lib/plan/open_load.h"

#include <doctest/doctest.h>

#include "lib/plan/service.h"
#include "tests/support/generators.h"

using namespace shardtool;
using plan::AnswerTimes;
using plan::most_requests_per_s;
using plan::running_at;

namespace {

/// A replica whose decode step takes more time with every sequence of a group. Each stage has its
/// own batch, and the batches take their steps in turn.
AnswerTimes any_replica() {
  const i64 groups = *gen::between(1, 4), stages = *gen::between(1, 4);
  const auto start_us = static_cast<double>(*gen::between(1, 20'000));
  const auto each_us = static_cast<double>(*gen::between(0, 2'000));
  const auto prompts_us = static_cast<double>(*gen::between(1, 100'000));
  const i64 answer = *gen::between(1, 100);
  const auto answer_us = [=](i64 running) {
    const i64 batches = std::min(running, stages);
    double step_us = 0;
    for (i64 batch = 0; batch < batches; ++batch) {
      const i64 sequences = ceil_div(running - batch, batches);
      step_us += start_us + each_us * static_cast<double>(ceil_div(sequences, groups));
    }
    const plan::PassTimes times{step_us / static_cast<double>(batches), prompts_us,
                                std::min(groups, running), stages};
    return plan::service_of({1024, answer, running}, running, times).answer_us();
  };
  return {*gen::between(1, 100), groups * stages, answer_us};
}

constexpr double kNearlyOne = 1 - 1e-12;  // rates that differ by rounding are equal

double rate_of(const AnswerTimes& times, i64 running) {
  return static_cast<double>(running) / times.answer_us(running) * 1e6;
}

}  // namespace

TEST_CASE("the sequences of an open load are the fewest that keep up with it") {
  CHECK(rc::check("Little's law", [] {
    const AnswerTimes times = any_replica();
    const double most = most_requests_per_s(times);
    const double rate = most * static_cast<double>(*gen::between(1, 110)) / 100;
    std::optional<i64> fewest;
    for (i64 running = 1; running <= times.most && !fewest; ++running) {
      if (rate_of(times, running) >= kNearlyOne * rate) fewest = running;
    }
    RC_ASSERT(running_at(rate, times) == fewest);
    RC_ASSERT(fewest.has_value() == (kNearlyOne * rate <= most));
  }));
}

TEST_CASE("the rate of a number of sequences leads to that number") {
  CHECK(rc::check("rate", [] {
    const AnswerTimes times = any_replica();
    const i64 running = *gen::between(1, times.most);
    const auto found = running_at(rate_of(times, running), times);
    RC_ASSERT(found.has_value());
    RC_ASSERT(*found <= running);
    RC_ASSERT(rate_of(times, *found) >= rate_of(times, running));
  }));
}

TEST_CASE("a number of sequences is found with few answers") {
  i64 asked = 0;
  const AnswerTimes times{i64{1} << 20, 4, [&](i64 running) {
                            ++asked;
                            return 1'000'000 + 2.0 * static_cast<double>(running);
                          }};
  CHECK(running_at(100'000, times) == 125'000);
  CHECK(asked < 40);
  CHECK_FALSE(running_at(500'000, times));
}
