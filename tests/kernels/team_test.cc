// Teams of lanes: one thread of a host and many threads give the same bits, in the order of sums
// that team.h defines.
#include "kernels/device/team.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/machine_test.h"
#include "tests/kernels/threads/block_machine.h"
#include "tests/kernels/threads/lane_sums.h"

namespace shardtool::kernels {
namespace {

/// Sizes of items: everything up to 3 warps, then near multiples of a warp, of the numbers that
/// lanes read at once, and of a block.
std::vector<i64> sizes() {
  std::vector<i64> found;
  for (i64 n = 0; n <= 97; ++n) found.push_back(n);
  for (const i64 n : {128, 160, 256, 512, 768, 1024, 1280, 2048, 2304}) {
    for (const i64 more : {-1, 0, 1}) found.push_back(n + more);
  }
  return found;
}

template <class T>
bool same(const T& a, const T& b) {
  return same_numbers(std::vector<T>{a}, std::vector<T>{b});
}

/// Results of a team for n numbers: the sum of their squares, the largest, and their squares.
template <class T>
struct Computed {
  T sum{};
  T largest{};
  std::vector<T> squares;
};

template <class T, class Team>
void compute(const Team& team, const std::vector<T>& x, Computed<T>& made) {
  const i64 n = std::ssize(x);
  const auto square = [&x](i64 k) { return x[static_cast<size_t>(k)] * x[static_cast<size_t>(k)]; };
  const T sum = team.template sum<T>(n, square);
  team.write(n, square, made.squares.data());
  if (team.is_first()) made.sum = sum;
  if constexpr (std::is_floating_point_v<T>) {
    const T least = std::numeric_limits<T>::lowest();
    const T most = team.template largest<T>(
        n, [&x](i64 k) { return x[static_cast<size_t>(k)]; }, least);
    if (team.is_first()) made.largest = most;
  }
}

template <class T>
void check_teams(int lanes) {
  CAPTURE(lanes);
  for (const i64 n : sizes()) {
    CAPTURE(n);
    const auto x = random_numbers<T>(static_cast<size_t>(n), static_cast<std::uint64_t>(n));
    std::vector<T> squares;
    for (const T& number : x) squares.push_back(number * number);
    Computed<T> host{{}, {}, std::vector<T>(x.size())};
    compute(HostTeam(lanes), x, host);
    CHECK(same(host.sum, sum_in_lanes(squares, lanes)));
    CHECK(same_numbers(host.squares, squares));
    if constexpr (std::is_floating_point_v<T>) {
      const T least = std::numeric_limits<T>::lowest();
      CHECK(host.largest == (x.empty() ? least : *std::max_element(x.begin(), x.end())));
    }
    for (const std::uint64_t order : {1, 2, 3}) {
      Computed<T> made{{}, {}, std::vector<T>(x.size())};
      // Every lane must know the sum.
      std::vector<T> sums(static_cast<size_t>(lanes));
      use_lanes(lanes, order, [&](const auto& team) {
        compute(team, x, made);
        const T sum =
            team.template sum<T>(n, [&](i64 k) { return squares[static_cast<size_t>(k)]; });
        team.for_each(lanes, [&](i64 l) { sums[static_cast<size_t>(l)] = sum; });
      });
      CHECK(same(made.sum, host.sum));
      CHECK(same(made.largest, host.largest));
      CHECK(same_numbers(made.squares, host.squares));
      CHECK(std::all_of(sums.begin(), sums.end(), [&](const T& s) { return same(s, host.sum); }));
    }
  }
}

TEST_CASE("a team adds in the defined order, as one thread and as many") {
  for (const int lanes : {kWarpLanes, kMostLanes}) {
    check_teams<float>(lanes);
    check_teams<double>(lanes);
    check_teams<Field>(lanes);
  }
}

TEST_CASE("every number has one lane, and all lanes read what was written before they waited") {
  for (const int lanes : {kWarpLanes, kMostLanes}) {
    for (const std::uint64_t order : {1, 2, 3}) {
      for (const i64 n : {1, 31, 32, 33, 500, 1000}) {
        std::vector<int> visits(static_cast<size_t>(n)), seen(static_cast<size_t>(n));
        use_lanes(lanes, order, [&](const auto& team) {
          team.for_each(n, [&](i64 k) { ++visits[static_cast<size_t>(k)]; });
          team.sync();
          team.for_each(n, [&](i64 k) {
            seen[static_cast<size_t>(k)] = visits[static_cast<size_t>(n - 1 - k)];
          });
        });
        CHECK(std::count(visits.begin(), visits.end(), 1) == n);
        CHECK(std::count(seen.begin(), seen.end(), 1) == n);
      }
    }
  }
}

template <class T>
void check_rows_at_once() {
  for (const i64 m : {0, 1, 2, 7, 8, 9, 15, 16, 17, 40}) {
    for (const i64 n : {0, 1, 5, 31, 32, 33, 100}) {
      CAPTURE(m);
      CAPTURE(n);
      const auto rows = random_numbers<T>(static_cast<size_t>(m * n), 5);
      const auto x = random_numbers<T>(static_cast<size_t>(n), 6);
      std::vector<T> expected;
      for (i64 p = 0; p < m; ++p) {
        std::vector<T> products;
        for (i64 k = 0; k < n; ++k) {
          products.push_back(x[static_cast<size_t>(k)] * rows[static_cast<size_t>(p * n + k)]);
        }
        expected.push_back(sum_in_lanes(products, kWarpLanes));
      }
      std::vector<T> made;
      const auto multiply = [&](const auto& team) {
        team.multiply_rows(
            m, [&](i64 p) { return rows.data() + p * n; }, n, x.data(),
            [&](i64 p, T sum) { made[static_cast<size_t>(p)] += sum; });
      };
      made.assign(expected.size(), T{});
      multiply(HostTeam(kWarpLanes));
      CHECK(same_numbers(made, expected));
      for (const std::uint64_t order : {1, 2, 3}) {
        made.assign(expected.size(), T{});
        use_lanes(kWarpLanes, order, multiply);
        CHECK(same_numbers(made, expected));
      }
    }
  }
}

TEST_CASE("the products of many rows have the order of each by itself, and one lane stores each") {
  check_rows_at_once<float>();
  check_rows_at_once<double>();
  check_rows_at_once<Field>();
}

TEST_CASE("long items have the lanes of a block, short ones those of a warp") {
  CHECK(lanes_for(0) == kWarpLanes);
  CHECK(lanes_for(512) == kWarpLanes);
  CHECK(lanes_for(513) == kMostLanes);
}

TEST_CASE("works of teams give the host's bits when every lane is a thread") {
  check_ops<BlockMachine, Field>();
  check_ops<BlockMachine, double>();
  check_ops<BlockMachine, float>();
}

}  // namespace
}  // namespace shardtool::kernels
