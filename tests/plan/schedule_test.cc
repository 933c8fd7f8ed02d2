#include "lib/plan/schedule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "tests/support/generators.h"

using namespace shardtool;
using plan::MemoryStep;

namespace {

std::vector<MemoryStep> any_steps(i64 most) {
  std::vector<MemoryStep> steps;
  const i64 count = *gen::between(1, most);
  for (i64 i = 0; i < count; ++i) {
    const i64 source = *gen::between(0, 9);
    const i64 destination = *gen::between(0, 9);
    const i64 staging = *gen::between(0, 3);
    steps.push_back({source, destination, destination + staging, 1});
  }
  return steps;
}

std::vector<size_t> in_order(size_t n) {
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

/// Splits steps into single tensors.
std::vector<MemoryStep> one_by_one(const std::vector<MemoryStep>& steps,
                                   const std::vector<size_t>& order) {
  std::vector<MemoryStep> single;
  for (const size_t i : order) {
    for (i64 n = 0; n < steps[i].tensors; ++n)
      single.push_back({steps[i].source, steps[i].destination, steps[i].extra, 1});
  }
  return single;
}

TEST_CASE("no order has a lower peak than the best order") {
  CHECK(rc::check("best_order", [] {
    const std::vector<MemoryStep> steps = any_steps(6);
    std::vector<size_t> order = in_order(steps.size());
    i64 least = plan::peak_bytes(steps, order);
    while (std::next_permutation(order.begin(), order.end()))
      least = std::min(least, plan::peak_bytes(steps, order));
    RC_ASSERT(plan::peak_bytes(steps, plan::best_order(steps)) == least);
  }));
}

TEST_CASE("tensors that are alike peak as they do one by one") {
  CHECK(rc::check("tensors > 1", [] {
    std::vector<MemoryStep> steps = any_steps(4);
    for (MemoryStep& step : steps) step.tensors = *gen::between(1, 4);
    const std::vector<size_t> order = plan::best_order(steps);
    const std::vector<MemoryStep> single = one_by_one(steps, order);
    RC_ASSERT(plan::peak_bytes(steps, order) == plan::peak_bytes(single, in_order(single.size())));
  }));
}

TEST_CASE("a schedule for many devices keeps to its bound and tells each one's peak") {
  CHECK(rc::check("schedule", [] {
    std::vector<std::vector<MemoryStep>> devices(static_cast<size_t>(*gen::between(1, 4)));
    const std::vector<MemoryStep> first = any_steps(5);
    for (auto& device : devices) {
      device = first;
      for (MemoryStep& step : device) {
        step.source = *gen::between(0, 9);
        step.destination = *gen::between(0, 9);
        step.extra = step.destination;
      }
    }
    const plan::Schedule found = plan::schedule(devices);
    RC_ASSERT(found.peak >= found.bound);
    RC_ASSERT(found.peak == *std::max_element(found.peak_bytes.begin(), found.peak_bytes.end()));
    for (size_t d = 0; d < devices.size(); ++d)
      RC_ASSERT(found.peak_bytes[d] == plan::peak_bytes(devices[d], found.order));
    if (devices.size() == 1)
      RC_ASSERT(found.peak == plan::peak_bytes(devices[0], plan::best_order(devices[0])));
  }));
}

TEST_CASE("what shrinks goes first, what grows goes last") {
  const std::vector<MemoryStep> steps{{1, 8, 8, 1}, {8, 1, 1, 1}};
  CHECK(plan::best_order(steps) == std::vector<size_t>{1, 0});
  CHECK(plan::peak_bytes(steps, std::vector<size_t>{1, 0}) == 10);
  CHECK(plan::peak_bytes(steps, std::vector<size_t>{0, 1}) == 17);
}

TEST_CASE("what stays as it is needs no more room") {
  const std::vector<MemoryStep> steps{{5, 5, 0, 3}};
  CHECK(plan::peak_bytes(steps, std::vector<size_t>{0}) == 15);
}

}  // namespace
