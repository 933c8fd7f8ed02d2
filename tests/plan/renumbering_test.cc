#include "lib/plan/renumbering.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/support/generators.h"
#include "tests/support/throws.h"

using namespace shardtool;

namespace {

i64 weight_of(const std::vector<i64>& columns, i64 n, const std::vector<i64>& weights) {
  i64 sum = 0;
  for (size_t row = 0; row < columns.size(); ++row)
    sum += weights[row * static_cast<size_t>(n) + static_cast<size_t>(columns[row])];
  return sum;
}

/// Tries every order of the columns.
i64 best_by_trying(i64 rows, i64 n, const std::vector<i64>& weights) {
  std::vector<i64> columns(static_cast<size_t>(n));
  std::iota(columns.begin(), columns.end(), i64{0});
  i64 best = 0;
  do {
    const std::vector<i64> chosen(columns.begin(), columns.begin() + rows);
    best = std::max(best, weight_of(chosen, n, weights));
  } while (std::next_permutation(columns.begin(), columns.end()));
  return best;
}

TEST_CASE("no assignment is better than the one that is found") {
  CHECK(rc::check("best_assignment", [] {
    const i64 rows = *gen::between(1, 5);
    const i64 n = *gen::between(rows, 6);
    std::vector<i64> weights;
    for (i64 i = 0; i < rows * n; ++i) weights.push_back(*gen::between(0, 9));
    const auto columns = plan::best_assignment(rows, n, weights);
    RC_ASSERT(std::set<i64>(columns.begin(), columns.end()).size() == columns.size());
    RC_ASSERT(weight_of(columns, n, weights) == best_by_trying(rows, n, weights));
  }));
}

TEST_CASE("a permutation is undone") {
  const std::vector<i64> weights{0, 0, 7, 7, 0, 0, 0, 7, 0};
  CHECK(plan::best_assignment(3, 3, weights) == std::vector<i64>{2, 0, 1});
}

TEST_CASE("more rows than columns cannot be assigned") {
  CHECK_ERROR(kInternal, plan::best_assignment(2, 1, std::vector<i64>{1, 1}));
}

}  // namespace

TEST_CASE("the largest first is an assignment, no better than the best, which keeps to the bound") {
  CHECK(rc::check("greedy <= best <= bound", [] {
    const i64 rows = *gen::between(1, 6);
    const i64 columns = *gen::between(rows, 7);
    std::vector<i64> weights(static_cast<size_t>(rows * columns));
    for (i64& weight : weights) weight = *gen::between(0, 9);
    const auto sum = [&](const std::vector<i64>& columns_of) {
      i64 total = 0;
      for (size_t row = 0; row < columns_of.size(); ++row) {
        total += weights[row * static_cast<size_t>(columns) + static_cast<size_t>(columns_of[row])];
      }
      return total;
    };
    const auto greedy = plan::greedy_assignment(rows, columns, weights);
    RC_ASSERT(std::set<i64>(greedy.begin(), greedy.end()).size() == greedy.size());
    const i64 best = sum(plan::best_assignment(rows, columns, weights));
    RC_ASSERT(sum(greedy) <= best);
    RC_ASSERT(best <= plan::assignment_bound(rows, columns, weights));
  }));
}

TEST_CASE("a permutation is undone by the largest first, too, and is its bound") {
  const std::vector<i64> weights{1, 9, 1, 1, 1, 9, 9, 1, 1};
  CHECK(plan::greedy_assignment(3, 3, weights) == std::vector<i64>{1, 2, 0});
  CHECK(plan::assignment_bound(3, 3, weights) == 27);
}
