#include "lib/tutorial/layers/matrix.h"

#include <doctest/doctest.h>

#include "tests/support/generators.h"
#include "tests/support/throws.h"
#include "tests/tutorial/on_devices.h"

using namespace shardtool;
using namespace shardtool::tutorial;

namespace {

using Elements = std::vector<Field>;

Matrix<Field> any_matrix(i64 rows, i64 columns) {
  return random_matrix<Field>(rows, columns, static_cast<std::uint64_t>(*gen::between(0, 1000)));
}

TEST_CASE("a product of integer matrices is the one on paper, in every arithmetic") {
  const auto product = [](auto zero) {
    using T = decltype(zero);
    return times(matrix_of<T>({{1, 2}, {3, -4}}), matrix_of<T>({{5, 0, 1}, {-6, 7, 2}})) ==
           matrix_of<T>({{-7, 14, 5}, {39, -28, -5}});
  };
  CHECK(product(Field{}));
  CHECK(product(double{}));
  CHECK(product(float{}));
}

TEST_CASE("products are associative, distribute over sums and turn round when transposed") {
  CHECK(rc::check("ring laws", [] {
    const i64 n = *gen::between(0, 5);
    const i64 m = *gen::between(0, 5);
    const i64 k = *gen::between(0, 5);
    const auto a = any_matrix(n, m);
    const auto b = any_matrix(m, k);
    const auto c = any_matrix(m, k);
    const auto d = any_matrix(k, n);
    RC_ASSERT(times(times(a, b), d) == times(a, times(b, d)));
    RC_ASSERT(times(a, plus(b, c)) == plus(times(a, b), times(a, c)));
    RC_ASSERT(transposed(times(a, b)) == times(transposed(b), transposed(a)));
    RC_ASSERT(inner_product(times(a, b), transposed(d)) ==
              inner_product(b, times(transposed(a), transposed(d))));
  }));
}

TEST_CASE("parts along an axis, joined, are the matrix") {
  CHECK(rc::check("join(slices) = a", [] {
    const i64 rows = *gen::between(0, 6);
    const i64 columns = *gen::between(0, 6);
    const auto a = any_matrix(rows, columns);
    for (const Axis axis : {Axis::kRows, Axis::kColumns}) {
      const i64 first = *gen::between(0, a.extent(axis));
      const i64 second = *gen::between(first, a.extent(axis));
      const std::vector<Matrix<Field>> parts{slice(a, axis, {0, first}),
                                             slice(a, axis, {first, second}),
                                             slice(a, axis, {second, a.extent(axis)})};
      RC_ASSERT(joined<Field>(parts, axis) == a);
    }
  }));
}

TEST_CASE("the sum of the rows is a product with ones") {
  const auto a = random_matrix<Field>(4, 3, 1);
  CHECK(row_sum(a) == times(matrix_of<Field>({{1, 1, 1, 1}}), a));
  CHECK(row_sum(Matrix<Field>(0, 3)) == Matrix<Field>(1, 3));
}

TEST_CASE("sizes that do not meet are refused") {
  const Matrix<Field> a(2, 3);
  CHECK_ERROR(kShapeMismatch, times(a, a));
  CHECK_ERROR(kShapeMismatch, plus(a, Matrix<Field>(2, 2)));
  CHECK_ERROR(kShapeMismatch, plus(a, Matrix<Field>(3, 3)));
  CHECK_ERROR(kShapeMismatch, inner_product(a, transposed(a)));
  CHECK_ERROR(kShapeMismatch, joined<Field>(std::vector{a, Matrix<Field>(2, 2)}, Axis::kRows));
  CHECK_ERROR(kInternal, Matrix<Field>(2, 3, Elements(5)));
}

TEST_CASE("a residue is positive when the integer of least magnitude is") {
  CHECK_FALSE(is_positive(Field{}));
  CHECK(is_positive(Field{1}));
  CHECK(is_positive(Field{kernels::kFieldPrime / 2}));
  CHECK_FALSE(is_positive(Field{kernels::kFieldPrime / 2 + 1}));
  CHECK_FALSE(is_positive(Field::from_signed(-1)));
  CHECK_FALSE(is_positive(0.0));
  CHECK(is_positive(1e-300));
}

TEST_CASE("an average times the number of summands is the sum") {
  for (i64 n = 1; n <= 5; ++n) {
    const Field sum = random_number<Field>(3, static_cast<std::uint64_t>(n));
    CHECK(divided(sum, n) * from_integer<Field>(n) == sum);
  }
  CHECK(divided(3.0, 4) == 0.75);
}

TEST_CASE("random floats lie between -1 and 1 and are the same in f32 and f64") {
  for (std::uint64_t n = 0; n < 1000; ++n) {
    const double number = random_number<double>(5, n);
    CHECK(number >= -1);
    CHECK(number < 1);
    CHECK(static_cast<double>(random_number<float>(5, n)) == number);
  }
}

}  // namespace
