// xIELU at known points, and between them.
#include "kernels/ops/xielu.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>

#include "kernels/field/field.h"

namespace shardtool::kernels {
namespace {

XieluSpec<double> some_spec() {
  const auto number = [](int least, int most) { return *rc::gen::inRange(least, most) / 100.0; };
  return {number(-300, 300), number(-300, 300), number(1, 200), -1e-6};
}

TEST_CASE("xielu is a parabola above 0 and goes down to a line below") {
  const double raw = std::log(std::expm1(0.8));  // softplus(raw) = 0.8
  const XieluSpec<double> spec{raw, std::log(std::expm1(0.3)), 0.5, -1e-6};
  CHECK(xielu(spec, 0.0) == doctest::Approx(-0.8e-6));
  CHECK(xielu(spec, 1.0) == doctest::Approx(1.3));
  CHECK(xielu(spec, 10.0) == doctest::Approx(85));
  CHECK(xielu(spec, -1.0) == doctest::Approx(0.8 * std::exp(-1.0) - 0.5));
  CHECK(xielu(spec, -50.0) == doctest::Approx(0.8 * 49 - 25));
  CHECK(std::isnan(xielu(spec, std::nan(""))));
}

TEST_CASE("xielu has the same value and slope on both sides of 0") {
  CHECK(rc::check("smooth", [] {
    const XieluSpec<double> spec = some_spec();
    constexpr double kNear = 1e-5;
    const double above = xielu(spec, kNear), below = xielu(spec, -kNear);
    RC_ASSERT(std::abs(above) + std::abs(below) < 1e-3);
    RC_ASSERT(std::abs((above - below) / (2 * kNear) - spec.beta) < 1e-3);
  }));
}

TEST_CASE("in the field xielu depends on its argument and on each of its numbers") {
  const XieluSpec<Field> zero{};
  const Field x{5};
  CHECK(xielu(zero, x) != xielu(zero, Field{6}));
  CHECK(xielu(zero, Field{1}) + xielu(zero, Field{4}) != xielu(zero, Field{5}));
  CHECK(xielu({Field{1}, {}, {}, {}}, x) != xielu(zero, x));
  CHECK(xielu({{}, Field{1}, {}, {}}, x) != xielu(zero, x));
  CHECK(xielu({{}, {}, Field{1}, {}}, x) != xielu(zero, x));
  CHECK(xielu({{}, {}, {}, Field{1}}, x) != xielu(zero, x));
  CHECK(xielu({Field{1}, Field{2}, {}, {}}, x) != xielu({Field{2}, Field{1}, {}, {}}, x));
}

}  // namespace
}  // namespace shardtool::kernels
