#include "kernels/field/field.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <set>

namespace shardtool::kernels {
namespace {

/// Residue by integer division.
std::uint64_t slow(Wide n) {
  return static_cast<std::uint64_t>(n % kFieldPrime);
}

Field any_residue() {
  // Values near the ends are frequent, since they cause carries.
  const auto n = *rc::gen::arbitrary<std::uint64_t>();
  const auto near = *rc::gen::inRange<std::uint64_t>(0, 4);
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      return {near};
    case 1:
      return {kFieldPrime - 1 - near};
    default:
      return {n % kFieldPrime};
  }
}

TEST_CASE("sums, differences and products are those of the integers modulo p") {
  CHECK(rc::check("ring", [] {
    const Field a = any_residue();
    const Field b = any_residue();
    RC_ASSERT((a + b).v == slow(Wide{a.v} + b.v));
    RC_ASSERT((a - b).v == slow(Wide{a.v} + kFieldPrime - b.v));
    RC_ASSERT((a * b).v == slow(Wide{a.v} * b.v));
    RC_ASSERT((-a + a).v == 0U);
  }));
}

TEST_CASE("folding takes any number of 128 bits") {
  CHECK(rc::check("fold", [] {
    const auto high = *rc::gen::arbitrary<std::uint64_t>();
    const auto low = *rc::gen::arbitrary<std::uint64_t>();
    const Wide n = (Wide{high} << 64) | low;
    RC_ASSERT(fold(n).v == slow(n));
    RC_ASSERT(to_field(low).v == slow(low));
  }));
  CHECK(fold(~Wide{0}).v == slow(~Wide{0}));
  CHECK(to_field(kFieldPrime).v == 0);
  CHECK(to_field(~std::uint64_t{0}).v == slow(~std::uint64_t{0}));
}

TEST_CASE("inverses, powers and rotations") {
  CHECK(rc::check("inverse and rotation", [] {
    const Field a = any_residue();
    if (a.v != 0) RC_ASSERT(a * inverse(a) == Field{1});
    const auto n = *rc::gen::inRange<std::int64_t>(-300, 300);
    const auto m = *rc::gen::inRange<std::int64_t>(-300, 300);
    RC_ASSERT(power_of_two(n) * power_of_two(m) == power_of_two(n + m));
    RC_ASSERT(power_of_two(1) * a == a + a);
  }));
  CHECK(inverse(Field{}) == Field{});
}

TEST_CASE("negative integers are additive inverses") {
  CHECK(rc::check("negatives", [] {
    const auto n = *rc::gen::arbitrary<std::int64_t>();
    RC_ASSERT(Field::from_signed(n) ==
              (n < 0 ? -to_field(std::uint64_t{0} - static_cast<std::uint64_t>(n))
                     : to_field(static_cast<std::uint64_t>(n))));
  }));
  CHECK(Field::from_signed(-1).v == kFieldPrime - 1);
  CHECK(Field::from_signed(INT64_MIN) + power_of_two(63) == Field{});
}

TEST_CASE("random residues are canonical and do not repeat") {
  std::set<std::uint64_t> seen;
  for (std::uint64_t n = 0; n < 10'000; ++n) {
    const Field r = field_random(7, n);
    REQUIRE(r.v < kFieldPrime);
    seen.insert(r.v);
  }
  CHECK(seen.size() == 10'000);
  CHECK(field_random(7, 3) == field_random(7, 3));
  CHECK_FALSE(field_random(7, 3) == field_random(8, 3));
}

}  // namespace
}  // namespace shardtool::kernels
