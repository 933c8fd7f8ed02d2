#include "lib/plan/placement/solver.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/plan/reshard_report.h"
#include "tests/plan/placements.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

/// Vectors of the source system's solver: its tests, and plans computed by its rules for Llama-3-8B
/// (4,096 hidden, 512 tokens, bf16) over four devices.
using namespace shardtool;
using plan::Action;
using plan::ActionSet;
using plan::AllowedMoves;
using plan::GreedyReshard;
using plan::Operand;
using plan::OpRow;
using plan::Parity;
using plan::Placement;
using testing::error_of;

namespace {

const Shape kTokens{512, 4096};  // 4,194,304 bytes

Operand operand(std::string name, Shape shape, std::vector<Placement> on) {
  return {std::move(name), std::move(shape), 2, std::move(on), {}};
}

ActionSet set_of(std::string op, std::vector<OpRow> rows, std::vector<Operand> operands,
                 Parity parity = Parity::kExact, mesh::Mesh mesh = kFour) {
  return plan::build_action_set(
      {std::move(op), std::move(mesh), std::move(operands), std::move(rows), {}, parity});
}

ActionSet add(Placement x, Placement y, Parity parity = Parity::kExact) {
  return set_of("add", plan::add_rows(kTokens, kTokens),
                {operand("x", kTokens, {x}), operand("y", kTokens, {y})}, parity);
}

ActionSet matmul(Shape x, Placement x_on, Shape w, Placement w_on, Parity parity) {
  auto rows = plan::matmul_rows(x, w);
  return set_of("matmul", std::move(rows), {operand("x", x, {x_on}), operand("w", w, {w_on})},
                parity);
}

/// "(S(1), S(0)) -> P, 0 bytes" for the only mesh axis.
std::string told(const ActionSet& set, const Action& action) {
  return to_string(set.rows[action.rows.front()]) + ", " + std::to_string(action.bytes) + " bytes";
}
std::string greedy(const ActionSet& set, AllowedMoves allowed = {}) {
  return told(set, GreedyReshard(allowed).choose(set));
}

std::string feasible_unary(Shape shape) {
  const auto rows = plan::nonlinear_rows(shape);
  const auto set = set_of("relu", rows, {operand("x", shape, {kR})}, Parity::kC);
  std::string text;
  for (const OpRow& row : set.rows) {
    if (is_feasible(set, row, 0)) text += to_string(row.result) + " ";
  }
  return text;
}

i64 cost(Placement from, Placement to, i64 bytes, i64 n, Parity parity = Parity::kB) {
  ActionSet set{"op", mesh::Mesh({{"tp", n}}), {operand("x", {bytes / 2}, {from})}, {}, {}, parity};
  return price_along(set, {{to}, to}, 0);
}

}  // namespace

TEST_CASE("costs of the source system: whole bytes of the tensor on a ring") {
  CHECK(cost(kS0, kR, 1024, 2) == 512);
  CHECK(cost(kS0, kR, 1024, 4) == 768);
  CHECK(cost(kS0, kR, 1024, 8) == 896);
  CHECK(cost(kP, kR, 4096, 8) == 7168);
  CHECK(cost(kP, kS0, 4096, 8) == 3584);
  CHECK(cost(kS0, kS0, 1024, 8) == 0);
  CHECK(cost(kP, kR, 1024, 1) == 0);
  CHECK(cost(kR, kS0, 1024, 8) == 0);
  CHECK(cost(kR, kS0, 1024, 8, Parity::kD) == 2);
  // on a mesh of (2, 8) the same tensor costs 512 along one axis and 896 along the other
  const mesh::Mesh mesh({{"dp", 2}, {"tp", 8}});
  const ActionSet set{"op", mesh, {operand("x", {512}, {kS0, kS0})}, {}, {}, Parity::kB};
  CHECK(price_along(set, {{kR}, kR}, 0) == 512);
  CHECK(price_along(set, {{kR}, kR}, 1) == 896);
}

TEST_CASE("feasible rows of one operand over four devices") {
  for (const i64 rows : {1, 2, 3}) CHECK(feasible_unary({rows, 8}) == "R S(1) ");
  for (const i64 rows : {4, 6}) CHECK(feasible_unary({rows, 8}) == "R S(0) S(1) ");
}

TEST_CASE("the older size check is skipped for every operand once one is cut so") {
  // lhs [2, 8] R, rhs [8, 16] S(0): (S(0), R) -> S(0) cuts two rows over four devices
  const auto is_there = [](Parity parity) {
    const auto set = matmul({2, 8}, kR, {8, 16}, kS0, parity);
    return is_feasible(set, {{kS0, kR}, kS0}, 0);
  };
  CHECK(is_there(Parity::kC));
  CHECK_FALSE(is_there(Parity::kD));
  CHECK_FALSE(is_there(Parity::kExact));
}

TEST_CASE("the older generations look at unequal parts, at the smallest and at the first") {
  // 10 rows over tp=4 are parts of 3, 3, 2 and 2; dp=2 may cut them again, dp=3 may not
  const auto feasible = [](i64 dp, std::vector<i64> parts, Parity parity) {
    Operand x = operand("x", {10, 8}, {kR, kS0});
    x.parts = {std::move(parts), {}};
    const ActionSet set = set_of("relu", plan::nonlinear_rows(x.shape), {x}, parity,
                                 mesh::Mesh({{"dp", dp}, {"tp", 4}}));
    return is_feasible(set, {{kS0}, kS0}, 0);
  };
  for (const Parity older : {Parity::kA, Parity::kB, Parity::kC}) {
    CHECK(feasible(2, {3, 3, 2, 2}, older));
    CHECK_FALSE(feasible(3, {3, 3, 2, 2}, older));
    CHECK_FALSE(feasible(2, {3, 3, 3, 1}, older));
    CHECK_FALSE(feasible(2, {4, 4, 2, 0}, older));
  }
  // the others only require as many rows as parts: 10 and 8
  CHECK(feasible(2, {3, 3, 3, 1}, Parity::kD));
  CHECK(feasible(2, {3, 3, 3, 1}, Parity::kExact));
  // 12 rows of 16 bytes are counted: 3 of 4 parts are 144 bytes, where 10 rows have 120
  Operand x = operand("x", {10, 8}, {kS0});
  x.parts = {{3, 3, 2, 2}, {}};
  const auto price = [&](Parity parity) {
    return price_along(set_of("relu", plan::nonlinear_rows(x.shape), {x}, parity), {{kR}, kR}, 0);
  };
  CHECK(price(Parity::kC) == 144);
  CHECK(price(Parity::kD) == 120);
}

TEST_CASE("an average of unequal shards is no average of all") {
  const OpRow averaged{{kS0}, Placement::partial(plan::ReduceOp::kAvg)};
  const auto feasible = [&averaged](i64 rows, Parity parity) {
    const auto set =
        set_of("mean", {{{kR}, kR}, averaged}, {operand("x", {rows, 8}, {kS0})}, parity);
    return is_feasible(set, averaged, 0);
  };
  CHECK(feasible(8, Parity::kExact));
  CHECK_FALSE(feasible(10, Parity::kExact));  // parts of 3, 3, 2, 2
  CHECK(feasible(10, Parity::kB));
}

TEST_CASE("a budget of operand bytes decides between the ways to multiply") {
  const auto set = matmul(kTokens, kR, {4096, 14336}, kR, Parity::kA);
  const auto within = [&set](std::optional<i64> budget) {
    const Action action = GreedyReshard({}, budget).choose(set);
    return to_string(set.rows[action.rows.front()]) + " " +
           std::to_string(operand_bytes(set, action.rows));
  };
  CHECK(within(std::nullopt) == "(R, R) -> R 121634816");
  CHECK(within(130'000'000) == "(R, R) -> R 121634816");
  CHECK(within(40'000'000) == "(R, S(1)) -> S(1) 33554432");
  CHECK(within(33'000'000) == "(S(1), S(0)) -> P 30408704");
  const auto error = error_of([&] { return within(20'000'000); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kPlacement);
  CHECK(error->message() == "matmul: no way to run it fits 20000000 bytes of operands");
}

TEST_CASE("tensor parallel blocks need one all_reduce each, of 6,291,456 bytes") {
  for (const Parity parity : {Parity::kA, Parity::kB, Parity::kC, Parity::kExact}) {
    CHECK(greedy(matmul(kTokens, kR, {4096, 14336}, kS1, parity)) == "(R, S(1)) -> S(1), 0 bytes");
    CHECK(greedy(matmul({512, 14336}, kS1, {14336, 4096}, kS0, parity)) ==
          "(S(1), S(0)) -> P, 0 bytes");
    CHECK(greedy(add(kR, kP, parity)) == "(R, R) -> R, 6291456 bytes");
  }
}

TEST_CASE(
    "with partial to sharded allowed the residual is scattered, the first axis wins the tie") {
  for (const Parity parity : {Parity::kB, Parity::kC, Parity::kExact}) {
    CHECK(greedy(add(kR, kP, parity), AllowedMoves::all()) ==
          "(S(0), S(0)) -> S(0), 3145728 bytes");
  }
  CHECK(greedy(matmul(kTokens, kS0, {4096, 14336}, kS1, Parity::kB), AllowedMoves::all()) ==
        "(R, S(1)) -> S(1), 3145728 bytes");
}

TEST_CASE("the newest generation keeps the sum Partial") {
  CHECK(greedy(add(kR, kP, Parity::kD)) == "(P, P) -> P, 16384 bytes");
  // a bias of 4,096 numbers becomes Partial for 8,192 / 256 bytes
  const auto bias = set_of("add", plan::add_rows(kTokens, {4096}),
                           {operand("x", kTokens, {kP}), operand("b", {4096}, {kR})}, Parity::kD);
  // (a row of P and P: all copies of the bias except one become zeros)
  CHECK(greedy(bias) == "(P, P) -> P, 32 bytes");
}

TEST_CASE("operands that are cut apart: the first row among equals") {
  CHECK(greedy(add(kS1, kS0, Parity::kB)) == "(S(0), S(0)) -> S(0), 3145728 bytes");
  // an all_to_all moves a quarter of what a gather does
  CHECK(greedy(add(kS1, kS0)) == "(S(0), S(0)) -> S(0), 786432 bytes");
}

TEST_CASE("a vocabulary cut by rows is gathered whole, or looked up with a mask") {
  const Shape table{128256, 4096};
  const Shape ids{512};
  const auto operands = [&] {
    return std::vector{operand("table", table, {kS0}), operand("ids", ids, {kR})};
  };
  const auto plain = set_of("gather", plan::gather_rows(table, ids), operands(), Parity::kB);
  CHECK(greedy(plain) == "(R, R) -> R, 788004864 bytes");
  const auto masked = set_of("gather", plan::masked_gather_rows(table, ids), operands());
  CHECK(greedy(masked) == "(S(0), R) -> P, 0 bytes");
}

TEST_CASE("bytes are those of the group, where the source system counts the whole tensor") {
  // dp=8, tp=2: x is a device's eighth of 64 MiB, so gathering it beats moving the weight
  const mesh::Mesh mesh({{"dp", 8}, {"tp", 2}});
  const Shape x{8192, 4096}, w{4096, 4096};
  const auto both = [&](Parity parity) {
    const auto set =
        set_of("matmul", plan::matmul_rows(x, w),
               {operand("x", x, {kS0, kS1}), operand("w", w, {kR, kS1})}, parity, mesh);
    const Action action = GreedyReshard().choose(set);
    return to_string(set.rows[action.rows[1]]) + " " + std::to_string(action.bytes);
  };
  CHECK(both(Parity::kB) == "(S(1), S(0)) -> P 16777216");
  CHECK(both(Parity::kExact) == "(R, S(1)) -> S(1) 4194304");
}

TEST_CASE("no action is cheaper than the exact solver's, and none is chosen that is not allowed") {
  CHECK(rc::check("greedy is the least over all choices", [] {
    const mesh::Mesh mesh({{"a", *gen::between(1, 3)}, {"b", *gen::between(1, 2)}});
    const Shape x{12, 6}, w{6, 12};
    const auto any = [] { return *rc::gen::element(kR, kS0, kS1); };
    const auto set = set_of("matmul", plan::matmul_rows(x, w),
                            {operand("x", x, {any(), any()}), operand("w", w, {any(), any()})},
                            Parity::kExact, mesh);
    const Action best = GreedyReshard().choose(set);
    for (size_t i = 0; i < set.rows.size(); ++i) {
      for (size_t j = 0; j < set.rows.size(); ++j) {
        if (!is_feasible(set, set.rows[i], 0) || !is_feasible(set, set.rows[j], 1)) continue;
        RC_ASSERT(best.bytes <= price_of(set, {i, j}));
      }
    }
  }));
}

TEST_CASE("solvers that move nothing, or sums only") {
  const plan::NoReshard none;
  const plan::PartialsOnly sums;
  const auto lies = add(kS1, kS1);
  CHECK(told(lies, none.choose(lies)) == "(S(1), S(1)) -> S(1), 0 bytes");
  const auto partial = add(kR, kP);
  CHECK_ERROR(kPlacement, none.choose(partial).rows.size());
  CHECK(told(partial, sums.choose(partial)) == "(R, R) -> R, 6291456 bytes");
  const auto apart = add(kS0, kS1);
  CHECK_ERROR(kPlacement, sums.choose(apart).rows.size());
  const auto oldest = add(kS0, kS1, Parity::kA);
  CHECK(told(oldest, none.choose(oldest)) == "(R, R) -> R, 6291456 bytes");
}

TEST_CASE("where only a barred move is left, the message names the flag") {
  const auto rows = std::vector<OpRow>{{{kS0}, kS0}};
  auto set = set_of("relu", rows, {operand("x", kTokens, {kP})});
  set.rows = rows;
  const auto error = error_of([&] { return GreedyReshard().choose(set).rows.size(); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kPlacement);
  CHECK(error->help_lines().front().find("allow_partial_to_sharded") != std::string::npos);
  CHECK(greedy(set, AllowedMoves::all()) == "(S(0)) -> S(0), 3145728 bytes");
}

TEST_CASE("a user's solver decides") {
  class LastRow : public plan::Solver {
   public:
    Action choose(const ActionSet& set) const override {
      return {{set.rows.size() - 1}, 0, {set.rows.back().result}};
    }
  };
  std::vector<std::string> warnings;
  const auto set = add(kP, kP);
  CHECK(plan::choose(LastRow(), set, plan::OnReshard::kRaise, warnings).results.front() == kP);
}

TEST_CASE("policies: silent, a warning, a refusal with what would move") {
  std::vector<std::string> warnings;
  const auto set = add(kR, kP);
  const GreedyReshard solver;
  CHECK(plan::choose(solver, set, plan::OnReshard::kSilent, warnings).bytes == 6'291'456);
  CHECK(warnings.empty());
  plan::choose(solver, set, plan::OnReshard::kWarn, warnings);
  CHECK(warnings == std::vector<std::string>{"add moves 1 operand: 6,291,456 bytes per device"});
  const auto error =
      error_of([&] { return plan::choose(solver, set, plan::OnReshard::kRaise, warnings).bytes; });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kPlacement);
  CHECK(error->notes().front().second == "all_reduce y (R, R -> R)");
  // a free slice is a move, too
  const auto sliced = matmul(kTokens, kR, {4096, 4096}, kS0, Parity::kExact);
  CHECK_ERROR(kPlacement, plan::choose(solver, sliced, plan::OnReshard::kRaise, warnings).bytes);
}

TEST_CASE("the report shows every row with its price") {
  const auto set = add(kR, kP);
  const AllowedMoves allowed;
  const auto report = report_of(set, GreedyReshard(allowed).choose(set), allowed);
  CHECK(report.headline == "add moves 1 operand: 6,291,456 bytes per device");
  std::vector<std::string> lines;
  for (const plan::CandidateLine& line : report.lines) {
    lines.push_back(fmt::format("{}: ({}) -> {}: {}: {}: {}", line.axis,
                                fmt::join(line.operands, ", "), line.result, line.collectives,
                                line.bytes, line.status));
  }
  CHECK(lines == std::vector<std::string>{
                     "tp: (R, R) -> R: all_reduce y: 6291456: chosen, moves",
                     "tp: (S(0), S(0)) -> S(0): slice x, reduce_scatter y: 3145728: not allowed",
                     "tp: (S(1), S(1)) -> S(1): slice x, reduce_scatter y: 3145728: not allowed"});
}

TEST_CASE("rows that do not place every operand are refused") {
  CHECK_ERROR(kPlacement, set_of("op", {}, {}).rows.size());
  CHECK_ERROR(kPlacement, set_of("op", {{{kR}, kR}}, {}).rows.size());
  CHECK_ERROR(kPlacement, set_of("op", {{{kR}, kR}}, {operand("x", {4}, {})}).rows.size());
}
