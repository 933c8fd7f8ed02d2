#include "lib/plan/service.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/generators.h"

using namespace shardtool;
using doctest::Approx;
using plan::EngineOverheads;
using plan::PassTimes;
using plan::Service;
using plan::service_of;
using plan::ServiceLoad;

namespace {

constexpr EngineOverheads kNone{0, 0, 1, 0, 1, 1};

ServiceLoad load_of(i64 concurrency) {
  return {*gen::between(1, 8192), *gen::between(1, 2048), concurrency};
}

PassTimes times() {
  return {static_cast<double>(*gen::between(1, 100'000)),
          static_cast<double>(*gen::between(1, 1'000'000)), *gen::between(1, 8),
          *gen::between(1, 8)};
}

}  // namespace

// Llama-3.1-8B in bf16 on two H100s, 4096/128: measured 70.3 ms per token at 128 clients.
TEST_CASE("an answer waits for the prompts of the other clients") {
  const Service service = service_of({4096, 128, 128}, 128, {18'000, 52'000}, kNone);
  CHECK(service.tpot_us == Approx(18'000 + 127 * 52'000.0 / 128));
  CHECK(service.others_us == Approx(51'593.75));
  CHECK(service_of({4096, 128, 1}, 1, {18'000, 52'000}, kNone).tpot_us == 18'000);
}

TEST_CASE("the parts of a time are the time") {
  CHECK(rc::check("parts", [] {
    const i64 running = *gen::between(1, 64);
    const Service service = service_of(load_of(running + *gen::between(0, 64)), running, times());
    RC_ASSERT(service.tpot_us == service.step_us + service.host_us + service.others_us);
    const double parts =
        service.request_us + service.prompt_us + service.turn_us + service.queue_us;
    RC_ASSERT(std::abs(service.ttft_us - parts) <= 1e-9 * parts);
  }));
}

TEST_CASE(
    "clients are tokens per second times the time of a token, whether they have a place or wait") {
  CHECK(rc::check("Little's law", [] {
    const i64 running = *gen::between(1, 64);
    const ServiceLoad load = load_of(running + *gen::between(0, 64));
    const Service service = service_of(load, running, times());
    const double clients =
        service.tokens_per_s / static_cast<double>(load.answer_len) * service.answer_us() / 1e6;
    const auto wanted = static_cast<double>(load.concurrency);
    RC_ASSERT(std::abs(clients - wanted) <= 1e-9 * wanted);
  }));
}

TEST_CASE("a replica does not take more prompts than it can read, however short the answers are") {
  CHECK(rc::check("prompts per second", [] {
    const i64 running = *gen::between(1, 64);
    const PassTimes passes = times();
    const ServiceLoad load{1024, *gen::between(1, 16), running};
    const Service service = service_of(load, running, passes);
    const double prompts_per_us = static_cast<double>(running) / service.answer_us();
    const double each = passes.prompts_us / static_cast<double>(passes.together * passes.stages);
    RC_ASSERT(prompts_per_us * each <= 1);
  }));
  const PassTimes passes{10'000, 1'400'000};
  CHECK(service_of({32768, 1, 64}, 64, passes, kNone).answer_us() == Approx(64 * 1.4e6 + 5'000));
}

TEST_CASE("clients without a place change nothing but the time to the first token") {
  const PassTimes times{10'000, 30'000};
  const Service served = service_of({1024, 256, 16}, 16, times);
  const Service starved = service_of({1024, 256, 64}, 16, times);
  CHECK(starved.tpot_us == served.tpot_us);
  CHECK(starved.tokens_per_s == served.tokens_per_s);
  CHECK(served.queue_us == 0);
  CHECK(starved.queue_us == Approx(3 * served.answer_us()));
}

TEST_CASE("stages and groups of a pass share its prompts") {
  const double alone = service_of({1024, 256, 17}, 17, {10'000, 32'000, 1, 1}, kNone).others_us;
  CHECK(alone == 2'000);
  CHECK(service_of({1024, 256, 17}, 17, {10'000, 32'000, 1, 2}, kNone).others_us == alone / 2);
  CHECK(service_of({1024, 256, 17}, 17, {10'000, 32'000, 4, 2}, kNone).others_us == alone / 8);
}

TEST_CASE("an own prompt takes longer with experts, and those of others do not") {
  const PassTimes dense{10'000, 30'000};
  PassTimes experts = dense;
  experts.has_experts = true;
  const ServiceLoad load{1024, 256, 8};
  const double more = EngineOverheads().experts_factor;
  CHECK(service_of(load, 8, experts).prompt_us ==
        Approx(more * service_of(load, 8, dense).prompt_us));
  CHECK(service_of(load, 8, experts).tpot_us == service_of(load, 8, dense).tpot_us);
}
