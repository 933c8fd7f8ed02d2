#include "lib/plan/training.h"

#include <doctest/doctest.h>

#include "tests/support/throws.h"

using namespace shardtool;
using plan::zero_state_bytes;

namespace {

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

}  // namespace
