// Step sizes and decays of states at known points.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>

#include "kernels/field/field.h"
#include "kernels/ops/recur.h"

namespace shardtool::kernels {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
const double kLog2 = std::log(2.0);

TEST_CASE("a step is softplus between its limits") {
  CHECK(step_of(0.0, 0, kNoLimit) == doctest::Approx(kLog2));
  CHECK(step_of(-50.0, 0, kNoLimit) == doctest::Approx(std::exp(-50.0)));
  CHECK(step_of(30.0, 0, kNoLimit) == 30);
  CHECK(step_of(0.0, 0.7, kNoLimit) == 0.7);
  CHECK(step_of(0.0, 0, 0.6) == 0.6);
}

TEST_CASE("a decay halves with every step of log 2 at rate 1, and twice as often at rate 2") {
  CHECK(decay_of(0.0, 0.0) == 1);
  CHECK(decay_of(0.0, kLog2) == doctest::Approx(0.5));
  CHECK(decay_of(0.0, 3 * kLog2) == doctest::Approx(0.125));
  CHECK(decay_of(kLog2, kLog2) == doctest::Approx(0.25));
}

TEST_CASE("steps that follow each other decay as one of their sum") {
  CHECK(rc::check("sum", [] {
    const double rate = *rc::gen::inRange(-200, 200) / 100.0;
    const double a = *rc::gen::inRange(0, 300) / 100.0;
    const double b = *rc::gen::inRange(0, 300) / 100.0;
    const double both = decay_of(rate, a + b);
    RC_ASSERT(std::abs(decay_of(rate, a) * decay_of(rate, b) - both) < 1e-12);
  }));
}

TEST_CASE("a decay with a least exponent stays between that and 1, and is half way at 0") {
  CHECK(bounded_decay_of(0.0, 0.0, -4.0) == doctest::Approx(std::exp(-2.0)));
  CHECK(bounded_decay_of(0.0, 50.0, -4.0) == doctest::Approx(std::exp(-4.0)));
  CHECK(bounded_decay_of(0.0, -50.0, -4.0) == doctest::Approx(1));
  CHECK(bounded_decay_of(kLog2, 1.0, -4.0) == doctest::Approx(bounded_decay_of(0.0, 2.0, -4.0)));
  CHECK(bounded_decay_of(Field{1}, Field{3}, -4.0) == decay_of(Field{1}, Field{3}));
}

TEST_CASE("what fades at a rate of log 2 halves") {
  CHECK(faded(0.0) == 1);
  CHECK(faded(kLog2) == doctest::Approx(0.5));
  CHECK(faded(Field{1}) != faded(Field{2}));
}

TEST_CASE("in the field a step depends on its number alone, a decay on rate and step") {
  CHECK(step_of(Field{3}, 0, 1) == step_of(Field{3}, 0.5, kNoLimit));
  CHECK(step_of(Field{3}, 0, 1) != step_of(Field{4}, 0, 1));
  CHECK(decay_of(Field{0}, Field{3}) != decay_of(Field{0}, Field{4}));
  CHECK(decay_of(Field{1}, Field{3}) != decay_of(Field{2}, Field{3}));
}

}  // namespace
}  // namespace shardtool::kernels
