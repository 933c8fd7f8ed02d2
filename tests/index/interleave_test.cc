#include "lib/index/interleave.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "tests/support/generators.h"
#include "tests/support/throws.h"

namespace shardtool::index {

TEST_CASE("interleaving takes the halves of every unit in turn") {
  const AxisMap map = interleaving(12, 6);
  const std::vector<i64> expected{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11};
  for (i64 local = 0; local < 12; ++local) {
    CHECK(map(local) == expected[static_cast<size_t>(local)]);
  }
  CHECK(interleaving(8, 2).is_identity());
  CHECK_ERROR(kInternal, interleaving(9, 3));
  CHECK_ERROR(kInternal, interleaving(9, 2));
}

TEST_CASE("interleaving a part is the part of the interleaved whole, for parts of whole units") {
  CHECK(rc::check("interleave", [] {
    const i64 unit = 2 * *gen::between(1, 4);
    const i64 units = *gen::between(1, 6);
    const i64 first = *gen::between(0, units - 1);
    const i64 last = *gen::between(first, units);
    const AxisMap part = AxisMap::slice(units * unit, {first * unit, last * unit});
    const auto stored = interleave(part, unit);
    RC_ASSERT(stored.has_value());
    RC_ASSERT(*stored == compose(interleaving(units * unit, unit), part));
    const AxisMap back = compose(*stored, inverse(interleaving(part.local_size(), unit)));
    RC_ASSERT(back == part);
  }));
}

TEST_CASE("a cut inside a unit and padding cannot be interleaved") {
  CHECK_FALSE(interleave(AxisMap::slice(16, {0, 6}), 4));
  CHECK_FALSE(interleave(AxisMap::slice(16, {2, 6}), 4));
  CHECK_FALSE(interleave(pad(AxisMap::slice(16, {0, 8}), 12), 4));
}

}  // namespace shardtool::index
