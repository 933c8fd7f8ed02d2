#include "lib/plan/placement/program.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/plan/placement/chain.h"
#include "lib/plan/placement/joint_plans.h"
#include "lib/plan/reshard_report.h"
#include "tests/plan/placements.h"
#include "tests/plan/program_builder.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

using namespace shardtool;
using plan::AllowedMoves;
using plan::GreedyReshard;
using plan::Parity;
using plan::Placement;
using plan::plan_op_by_op;
using plan::plan_together;
using plan::Program;
using plan::Reuse;

namespace {

/// A tensor-parallel layer of Llama-3-8B with its residual placed as `x_on`.
Program layer(Placement x_on) {
  ProgramBuilder b(kFour);
  b.operand("x", {512, 4096}, x_on);
  for (const char* name : {"wq", "wk", "wv"}) b.operand(name, {4096, 4096}, kS1);
  b.operand("wo", {4096, 4096}, kS0);
  b.operand("wg", {4096, 14336}, kS1).operand("wu", {4096, 14336}, kS1);
  b.operand("wd", {14336, 4096}, kS0);
  b.norm("h", "x").matmul("q", "h", "wq").matmul("k", "h", "wk").matmul("v", "h", "wv");
  b.attend("c", "q", "k", "v").matmul("o", "c", "wo").add("y", "x", "o");
  b.norm("m", "y").matmul("g", "m", "wg").matmul("u", "m", "wu").mul("p", "g", "u");
  b.matmul("d", "p", "wd").add("z", "y", "d").relu("end", "z");
  return b.build();
}

}  // namespace

TEST_CASE("a layer pays two all_reduces, decided op by op or together") {
  const GreedyReshard sums;
  for (const Parity parity : {Parity::kA, Parity::kB, Parity::kC, Parity::kExact}) {
    CHECK(plan_op_by_op(layer(kR), sums, parity, Reuse::kNo).bytes == 12'582'912);
  }
  CHECK(plan_together(layer(kR), {}).bytes == 12'582'912);
}

TEST_CASE("a residual that is cut is gathered once where values are reused, five times where not") {
  const GreedyReshard all(AllowedMoves::all());
  CHECK(plan_op_by_op(layer(kS0), all, Parity::kB, Reuse::kNo).bytes == 22'020'096);
  CHECK(plan_op_by_op(layer(kS0), all, Parity::kC, Reuse::kNo).bytes == 22'020'096);
  CHECK(plan_op_by_op(layer(kS0), all, Parity::kExact, Reuse::kYes).bytes == 12'582'912);
  CHECK(plan_together(layer(kS0), AllowedMoves::all()).bytes == 12'582'912);
}

TEST_CASE("the cheapest for one op is not the cheapest for two") {
  const auto two_ops = [](i64 columns) {
    return ProgramBuilder(kFour)
        .operand("x", {2048, 4096}, kS1)
        .operand("w", {4096, columns}, kS1)
        .matmul("y", "x", "w")
        .relu("z", "y")
        .build();
  };
  const GreedyReshard sums;
  // the source system moves w, then reduces: 9,437,184 twice, where gathering x is 12,582,912
  CHECK(plan_op_by_op(two_ops(1536), sums, Parity::kB, Reuse::kNo).bytes == 18'874'368);
  CHECK(plan_together(two_ops(1536), {}).bytes == 11'796'480);  // an all_to_all of w is even
                                                                // cheaper
  // with bytes as they are, deciding op by op still costs 2.5 times the best
  CHECK(plan_op_by_op(two_ops(4096), sums, Parity::kExact, Reuse::kYes).bytes == 31'457'280);
  CHECK(plan_together(two_ops(4096), {}).bytes == 12'582'912);
}

TEST_CASE("deciding together is never dearer than op by op") {
  CHECK(rc::check("plan_together <= plan_op_by_op", [] {
    ProgramBuilder b(mesh::Mesh({{"tp", *gen::between(1, 3)}}));
    const auto any = [] { return *rc::gen::element(kR, kS0, kS1); };
    const auto extent = [] { return 6 * *gen::between(1, 4); };
    const i64 m = extent(), k = extent(), n = extent();
    b.operand("x", {m, k}, any()).operand("w", {k, n}, any()).operand("r", {m, n}, any());
    b.matmul("y", "x", "w").add("s", "r", "y").norm("t", "s").mul("u", "t", "s").relu("v", "u");
    const Program program = b.build();
    const auto allowed = *rc::gen::element(AllowedMoves{}, AllowedMoves::all());
    const i64 alone =
        plan_op_by_op(program, GreedyReshard(allowed), Parity::kExact, Reuse::kYes).bytes;
    const auto together = plan_together(program, allowed);
    RC_CLASSIFY(together.bytes < alone, "cheaper together");
    RC_ASSERT(together.bytes <= alone);
    i64 sum = 0;
    for (const plan::Action& action : together.actions) sum += action.bytes;
    RC_ASSERT(sum == together.bytes);
    RC_ASSERT(together.actions.size() == program.ops.size());
  }));
}

TEST_CASE("a chain pays what its program pays in one piece") {
  // x is cut and read by both halves; the first keeps what it gathered
  Program first = layer(kS0), second = layer(kR);
  first.kept = {{"end", "x"}};
  const plan::Chain chain{{&first, &second}, {{0, 0}, {1, 0}, {1, 0}}};
  const auto best = plan_together(chain, AllowedMoves::all());
  const auto by_link = plan_by_link(chain, AllowedMoves::all());
  CHECK(best.bytes <= by_link.bytes);
  CHECK(best.of_link.size() == 3);
  i64 sum = 0;
  for (const size_t plan : best.of_link) sum += best.plans[plan].bytes;
  CHECK(sum == best.bytes);
}

TEST_CASE("a row is priced from the placements of the operands that are cheapest for it") {
  const Program program = ProgramBuilder(kFour)
                              .operand("x", {4, 8}, kP)
                              .operand("y", {4, 8}, kP)
                              .relu("h", "x")
                              .add("z", "x", "y")
                              .build();
  const AllowedMoves allowed;
  for (const auto& plan :
       {plan_op_by_op(program, GreedyReshard(allowed), Parity::kExact, Reuse::kYes),
        plan_together(program, allowed)}) {
    // x was summed for h, so that it is there as a sum and whole.
    REQUIRE(plan.available.size() == 2);
    CHECK(plan.available[1].at("x").size() == 2);
    CHECK(plan.actions[1].bytes == 0);
    const auto sources = plan::action_sets(program, 1, plan.available[1], Parity::kExact);
    CHECK(sources.size() == 2);
    const auto lines = report_of(plan.sets[1], plan.actions[1], allowed, sources).lines;
    const auto line_of = [&](const std::string& result) {
      return *std::ranges::find(lines, result, &plan::CandidateLine::result);
    };
    CHECK(line_of("P").status == "chosen");
    CHECK(line_of("R").insert == std::vector<std::string>{"all_reduce y over tp"});
    CHECK(line_of("R").bytes == 96);
    CHECK(line_of("S(1)").bytes == 48);
    CHECK(line_of("S(1)").why == "reduce_scatter is not allowed");
    CHECK(line_of("S(1)").insert == std::vector<std::string>{"slice x over tp to axis 1",
                                                             "reduce_scatter y over tp to axis 1"});
  }
}

TEST_CASE("a program that cannot run is an error") {
  auto program = layer(Placement::partial());
  CHECK_ERROR(kPlacement, plan_together(program, AllowedMoves::none()).bytes);
  program.ops.front().in = {"nothing"};
  CHECK_ERROR(kInternal, plan_together(program, {}).bytes);
}
