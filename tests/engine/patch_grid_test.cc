// Positions of patches in an image, and the patches that are merged into one position.
#include "lib/ops/patches/patch_grid.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "tests/support/throws.h"

using namespace shardtool;
using ops::PatchGrid;
using Order = ops::Patches::Order;

namespace {

Order any_order() {
  return *rc::gen::element(Order::kRows, Order::kSquares);
}

/// A grid of `across` x `down` squares of `side` x `side` patches.
struct Squares {
  i64 side = 0, across = 0, down = 0;
  i64 patches() const { return side * side * across * down; }
};
Squares any_squares() {
  Squares s;
  s.side = *rc::gen::inRange<i64>(1, 5);
  s.across = *rc::gen::inRange<i64>(1, 5);
  s.down = s.across;
  return s;
}

}  // namespace

TEST_CASE("squares have every patch once, and their patches are beside each other, row by row") {
  CHECK(rc::check("squares", [] {
    const Squares s = any_squares();
    const PatchGrid grid(any_order(), s.side, s.patches());
    RC_ASSERT(grid.width() == s.side * s.across);
    RC_ASSERT(grid.squares() == s.across * s.down);
    std::set<i64> seen;
    for (i64 n = 0; n < grid.squares(); ++n) {
      const std::vector<i64> patches = grid.square(n);
      RC_ASSERT(std::ssize(patches) == s.side * s.side);
      const auto corner = grid.place(patches.front());
      RC_ASSERT(corner.row == n / s.across * s.side);
      RC_ASSERT(corner.column == n % s.across * s.side);
      for (i64 i = 0; i < std::ssize(patches); ++i) {
        const auto place = grid.place(patches[static_cast<size_t>(i)]);
        RC_ASSERT(place.row == corner.row + i / s.side);
        RC_ASSERT(place.column == corner.column + i % s.side);
        seen.insert(patches[static_cast<size_t>(i)]);
      }
    }
    RC_ASSERT(std::ssize(seen) == s.patches());
    RC_ASSERT(*seen.rbegin() == s.patches() - 1);
  }));
}

TEST_CASE("both orders have the same places, each in its own turn") {
  CHECK(rc::check("places", [] {
    const Squares s = any_squares();
    const auto places = [&s](Order order) {
      const PatchGrid grid(order, s.side, s.patches());
      std::set<std::pair<i64, i64>> found;
      for (i64 p = 0; p < s.patches(); ++p) {
        const auto place = grid.place(p);
        found.emplace(place.row, place.column);
      }
      return found;
    };
    RC_ASSERT(places(Order::kRows) == places(Order::kSquares));
    RC_ASSERT(std::ssize(places(Order::kRows)) == s.patches());
  }));
}

TEST_CASE("patches that fill no square begin again at the first, and make one position at least") {
  CHECK(rc::check("few", [] {
    const i64 side = *rc::gen::inRange<i64>(1, 6);
    const i64 length = *rc::gen::inRange<i64>(1, 40);
    const PatchGrid grid(any_order(), side, length);
    RC_ASSERT(grid.squares() >= 1);
    RC_ASSERT(grid.width() >= side);
    RC_ASSERT(grid.width() % side == 0);
    RC_ASSERT((grid.width() == side || grid.width() * grid.width() <= length));
    for (i64 n = 0; n < length; ++n) {
      for (const i64 patch : grid.square(n)) RC_ASSERT((patch >= 0 && patch < length));
    }
  }));
  CHECK(PatchGrid(Order::kSquares, 2, 3).square(0) == std::vector<i64>{0, 1, 2, 0});
  CHECK(PatchGrid(Order::kRows, 2, 24).square(3) == std::vector<i64>{10, 11, 14, 15});
}

TEST_CASE("a square has as many rows as columns") {
  CHECK(ops::root_of(1) == 1);
  CHECK(ops::root_of(16) == 4);
  const auto error = testing::error_of([] { ops::root_of(8); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUnsupported);
  CHECK(error->message() == "8 patches make no square");
}
