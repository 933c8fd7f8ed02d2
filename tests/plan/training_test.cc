#include "lib/plan/training.h"

#include <doctest/doctest.h>

#include "tests/support/throws.h"

using namespace shardtool;
using plan::deepspeed_device_bytes;
using plan::Offload;
using plan::zero_state_bytes;

namespace {

double gib(double bytes) {
  return bytes / (1024.0 * 1024 * 1024);
}

// ZeRO (arXiv 1910.02054), figure 1: 7.5 billion parameters over 64 devices.
TEST_CASE("stages of ZeRO: 120, 31.4, 16.6 and 1.9 GB (D25)") {
  const auto gb = [](int stage) {
    return static_cast<double>(zero_state_bytes(7'500'000'000, stage, 64)) / 1e9;
  };
  CHECK(gb(0) == doctest::Approx(120));
  CHECK(gb(1) == doctest::Approx(31.4).epsilon(2e-3));
  CHECK(gb(2) == doctest::Approx(16.6).epsilon(3e-3));
  CHECK(gb(3) == doctest::Approx(1.9).epsilon(2e-2));
}

TEST_CASE("on one device every stage is the same, and more devices never need more each") {
  for (int stage = 0; stage <= 3; ++stage) {
    CHECK(zero_state_bytes(1'000, stage, 1) == 16'000);
    CHECK(zero_state_bytes(1'000, stage, 7) <= zero_state_bytes(1'000, stage, 3));
  }
  CHECK(zero_state_bytes(1'000, 0, 1, plan::kSgd) == 8'000);
  CHECK_ERROR(kInternal, zero_state_bytes(1, 4, 1));
}

// DeepSpeed, docs/code-docs/source/memory.rst: a model with 2,851 million parameters, the largest
// layer with 32 million, on 8 devices.
TEST_CASE("what DeepSpeed's own estimators print (D24)") {
  const auto device = [](int stage, Offload offload) {
    return gib(deepspeed_device_bytes(2'851'000'000, 32'000'000, stage, 8, offload));
  };
  constexpr double kPrinted = 0.005;  // two decimals
  const auto near = [](double a, double b) { return a - b < kPrinted && b - a < kPrinted; };
  CHECK(near(device(2, Offload::kOptimizer), 5.31));
  CHECK(near(device(2, Offload::kNone), 15.93));
  CHECK(near(device(3, Offload::kOptimizerAndWeights), 0.12));
  CHECK(near(device(3, Offload::kOptimizer), 0.78));
  CHECK(near(device(3, Offload::kNone), 6.09));
}

}  // namespace
