#include "lib/plan/placement/op_rules.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/throws.h"

using namespace shardtool;

namespace {

std::string text_of(const std::vector<plan::OpRow>& rows) {
  std::string text;
  for (const plan::OpRow& row : rows) text += (text.empty() ? "" : "; ") + to_string(row);
  return text;
}

}  // namespace

TEST_CASE("rows of the ops of a decoder block, in the order that breaks ties") {
  CHECK(text_of(plan::matmul_rows({512, 4096}, {4096, 14336})) ==
        "(R, R) -> R; (S(0), R) -> S(0); (R, S(1)) -> S(1); (S(1), S(0)) -> P; (P, R) -> P; "
        "(R, P) -> P");
  CHECK(text_of(plan::matmul_rows({8, 2, 4, 16}, {2, 16, 4})) ==
        "(R, R) -> R; (S(0), R) -> S(0); (S(1), S(0)) -> S(1); (S(2), R) -> S(2); "
        "(R, S(2)) -> S(3); (S(3), S(1)) -> P; (P, R) -> P; (R, P) -> P");
  CHECK(text_of(plan::nonlinear_rows({4, 8})) == "(R) -> R; (S(0)) -> S(0); (S(1)) -> S(1)");
  CHECK(text_of(plan::linear_rows({4})) == "(R) -> R; (S(0)) -> S(0); (P) -> P");
  CHECK(text_of(plan::mul_rows({4, 8}, {8})) ==
        "(R, R) -> R; (S(0), R) -> S(0); (S(1), S(0)) -> S(1)");
  CHECK(text_of(plan::add_rows({4, 8}, {4, 1})) ==
        "(R, R) -> R; (S(0), S(0)) -> S(0); (S(1), R) -> S(1); (P, P) -> P");
  CHECK(text_of(plan::norm_rows({2, 4, 8}, 1, 1)) ==
        "(R, R) -> R; (S(0), R) -> S(0); (S(1), R) -> S(1)");
  CHECK(text_of(plan::gather_rows({128256, 4096}, {512})) ==
        "(R, R) -> R; (S(1), R) -> S(1); (R, S(0)) -> S(0); (P, R) -> P");
  CHECK(text_of(plan::masked_gather_rows({128256, 4096}, {512})).ends_with("(S(0), R) -> P"));
}

TEST_CASE("rows of ops that leave some axes alone: the other axes, and sums if they are linear") {
  CHECK(text_of(plan::untouched_rows({2, 4, 8}, {0, 2}, true)) ==
        "(R) -> R; (S(1)) -> S(1); (P) -> P");
  CHECK(text_of(plan::untouched_rows({4, 8}, {1}, false)) == "(R) -> R; (S(0)) -> S(0)");  // top_k
}

TEST_CASE("shapes that do not fit each other are refused") {
  CHECK_ERROR(kShapeMismatch, plan::matmul_rows({4, 5}, {4, 5}));
  CHECK_ERROR(kShapeMismatch, plan::matmul_rows({4}, {4, 5}));
  CHECK_ERROR(kShapeMismatch, plan::add_rows({4}, {5}));
}
