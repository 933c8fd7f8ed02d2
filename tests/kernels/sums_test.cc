// Functions of sums and of sums of squares, compared with the numbers themselves.
#include "kernels/ops/sums.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>

#include "kernels/field/field.h"
#include "kernels/ops/balance.h"
#include "kernels/ops/pool.h"
#include "tests/kernels/random_numbers.h"

namespace shardtool::kernels {
namespace {

double squares_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double number : x) sum += number * number;
  return sum;
}
double sum_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double number : x) sum += number;
  return sum;
}
std::vector<double> some_numbers(std::uint64_t seed) {
  return random_numbers<double>(static_cast<size_t>(*rc::gen::inRange(1, 40)), seed);
}

TEST_CASE("resized numbers have the mean square of the others, unless theirs is too small") {
  CHECK(rc::check("resize", [] {
    std::vector<double> own = some_numbers(1);
    std::vector<double> other = random_numbers<double>(own.size(), 2);
    const double factor = resize_factor(squares_of(own), squares_of(other), std::ssize(own), 0);
    for (double& number : own) number *= factor;
    RC_ASSERT(std::abs(squares_of(own) - squares_of(other)) < 1e-12 * (1 + squares_of(other)));
  }));
  CHECK(resize_factor(0.0, 8.0, 2, 0.25) == 4);
  CHECK(resize_factor(0.5, 8.0, 2, 0.25) == 4);
  CHECK(resize_factor(2.0, 8.0, 2, 0.25) == 2);
}

TEST_CASE("a cutoff is the mean and so many deviations") {
  CHECK(rc::check("cutoff", [] {
    const std::vector<double> x = some_numbers(3);
    const auto n = static_cast<double>(x.size());
    const double quantile = *rc::gen::inRange(-30, 31) / 10.0;
    const double mean = sum_of(x) / n;
    double variance = 0;
    for (const double number : x) variance += (number - mean) * (number - mean) / n;
    const double expected = mean + quantile * std::sqrt(variance);
    RC_ASSERT(std::abs(cutoff_of(sum_of(x), squares_of(x), std::ssize(x), quantile) - expected) <
              1e-7);
  }));
  CHECK(cutoff_of(3.0, 3.0 - 1e-16, 3, 2.0) == 1);
}

TEST_CASE("quantiles are those of the normal distribution") {
  CHECK(normal_quantile(0.5) == doctest::Approx(0).epsilon(1e-15));
  CHECK(normal_quantile(0.95) == doctest::Approx(1.6448536269514722).epsilon(1e-14));
  CHECK(normal_quantile(0.975) == doctest::Approx(1.9599639845400545).epsilon(1e-14));
  CHECK(rc::check("symmetric and inverse", [] {
    const double share = *rc::gen::inRange(1, 1000) / 1000.0;
    RC_ASSERT(std::abs(normal_quantile(share) + normal_quantile(1 - share)) < 1e-12);
    const double back = 0.5 * std::erfc(-normal_quantile(share) / std::sqrt(2.0));
    RC_ASSERT(std::abs(back - share) < 1e-14);
  }));
  CHECK(std::isnan(normal_quantile(0)));
  CHECK(std::isnan(normal_quantile(1)));
}

TEST_CASE("streams are mixed as a product of matrices, in the field too") {
  CHECK(rc::check("mix", [] {
    const i64 n = *rc::gen::inRange<i64>(1, 6), size = *rc::gen::inRange<i64>(1, 6);
    const auto x = random_numbers<Field>(static_cast<size_t>(n * size), 4);
    const auto factors = random_numbers<Field>(static_cast<size_t>(n), 5);
    for (i64 f = 0; f < size; ++f) {
      Field expected;
      for (i64 i = 0; i < n; ++i) {
        expected += x[static_cast<size_t>(i * size + f)] * factors[static_cast<size_t>(i)];
      }
      RC_ASSERT(mixed(x.data() + f, size, factors.data(), n) == expected);
    }
    const auto wide = random_numbers<Field>(static_cast<size_t>(n * 3), 6);
    std::vector<Field> every_third;
    for (size_t i = 0; i < wide.size(); i += 3) every_third.push_back(wide[i]);
    RC_ASSERT(mixed(x.data(), size, wide.data(), n, 3) ==
              mixed(x.data(), size, every_third.data(), n));
  }));
}

TEST_CASE("a balanced matrix is positive, and its rows and columns add up to 1 after many rounds") {
  CHECK(rc::check("balance", [] {
    const i64 n = *rc::gen::inRange<i64>(1, 6);
    auto m = random_numbers<double>(static_cast<size_t>(n * n), 7);
    balance(m.data(), n, 500, 0.0);
    for (i64 line = 0; line < n; ++line) {
      double row = 0, column = 0;
      for (i64 i = 0; i < n; ++i) {
        row += m[static_cast<size_t>(line * n + i)];
        column += m[static_cast<size_t>(i * n + line)];
        RC_ASSERT(m[static_cast<size_t>(line * n + i)] > 0);
      }
      RC_ASSERT(std::abs(row - 1) < 1e-9);
      RC_ASSERT(std::abs(column - 1) < 1e-9);
    }
  }));
  // One round of [ln 1, ln 3; ln 1, ln 1] with eps 1/2: rows 3/4, 5/4 and 1, 1; then columns.
  std::vector<double> m{0, std::log(3.0), 0, 0};
  balance(m.data(), 2, 1, 0.5);
  CHECK(m[0] == doctest::Approx(0.75 / 2.25));
  CHECK(m[1] == doctest::Approx(1.25 / 2.75));
  CHECK(m[2] == doctest::Approx(1 / 2.25));
  CHECK(m[3] == doctest::Approx(1 / 2.75));
}

TEST_CASE("in the field every number of a balanced matrix depends on its row and on all columns") {
  std::vector<Field> m{{1}, {2}, {3}, {4}}, other{{1}, {2}, {3}, {5}}, turned{{1}, {3}, {2}, {4}};
  balance(m.data(), 2, 20, Field{});
  balance(other.data(), 2, 20, Field{});
  balance(turned.data(), 2, 20, Field{});
  CHECK(m[1] != other[1]);
  CHECK(m[2] != other[2]);
  CHECK(m[1] != turned[2]);
}

TEST_CASE("a pooled number is a mean by a softmax of scores, and in the field it depends on each") {
  std::vector<double> scores{0, std::log(3.0)};
  const std::vector<double> values{4, 8};
  CHECK(pooled(values.data(), scores.data(), 2) == doctest::Approx(7));
  const std::vector<Field> numbers{{4}, {8}};
  std::vector<Field> some{{1}, {2}}, others{{1}, {3}}, exchanged{{2}, {1}};
  const Field found = pooled(numbers.data(), some.data(), 2);
  CHECK(found != pooled(numbers.data(), others.data(), 2));
  CHECK(found != pooled(numbers.data(), exchanged.data(), 2));
}

TEST_CASE("in the field a factor depends on both sums, and a cutoff on all that it is made of") {
  const Field one{1}, two{2}, three{3};
  CHECK(resize_factor(one, two, 4, 0) == resize_factor(one, two, 4, 1));
  CHECK(resize_factor(one, two, 4, 0) != resize_factor(two, one, 4, 0));
  CHECK(resize_factor(one, two, 4, 0) != resize_factor(one, three, 4, 0));
  CHECK(cutoff_of(one, two, 4, three) != cutoff_of(two, two, 4, three));
  CHECK(cutoff_of(one, two, 4, three) != cutoff_of(one, three, 4, three));
  CHECK(cutoff_of(one, two, 4, three) != cutoff_of(one, two, 4, two));
}

}  // namespace
}  // namespace shardtool::kernels
