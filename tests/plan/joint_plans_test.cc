#include "lib/plan/placement/joint_plans.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <set>

#include "lib/plan/placement/chain.h"
#include "tests/plan/program_builder.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

using namespace shardtool;
using plan::AllowedMoves;
using plan::Placement;
using plan::plan_together;
using plan::Program;

namespace {

/// Returns an operand or an earlier result as the operand of an op.
plan::Operand operand_of(const Program& program, const std::string& name,
                         std::vector<Placement> on) {
  const auto operand = std::ranges::find(program.operands, name, &plan::Operand::name);
  if (operand != program.operands.end()) return {name, operand->shape, 2, std::move(on)};
  const auto makes = [&](const plan::ProgramOp& op) { return op.out.front() == name; };
  const auto made = std::ranges::find_if(program.ops, makes);
  return {name, made->out_shapes.front(), 2, std::move(on)};
}

/// Calls `visit` with one of `choices` numbers per place, for all of these.
void for_each_product(size_t places, const std::function<size_t(size_t)>& choices,
                      const std::function<void(const std::vector<size_t>&)>& visit,
                      std::vector<size_t> chosen = {}) {
  if (chosen.size() == places) return visit(chosen);
  for (size_t i = 0; i < choices(chosen.size()); ++i) {
    chosen.push_back(i);
    for_each_product(places, choices, visit, chosen);
    chosen.pop_back();
  }
}

/// True if the rows, one per mesh axis, are feasible with allowed moves.
bool can_run(const plan::ActionSet& set, const std::vector<size_t>& rows,
             const AllowedMoves& allowed) {
  for (size_t a = 0; a < rows.size(); ++a) {
    const plan::OpRow& row = set.rows[rows[a]];
    if (!is_feasible(set, row, a)) return false;
    for (size_t k = 0; k < row.operands.size(); ++k) {
      if (!allowed.contains(move_between(set.operands[k].on[a], row.operands[k]))) return false;
    }
  }
  return true;
}

/// The fewest bytes from op `next` on, by trying every feasible and allowed action.
i64 fewest(const Program& program, size_t next, const plan::Values& values,
           const AllowedMoves& allowed) {
  if (next == program.ops.size()) return 0;
  const plan::ProgramOp& op = program.ops[next];
  i64 best = std::numeric_limits<i64>::max();
  const auto places_of = [&](size_t k) { return values.at(op.in[k]).size(); };
  for_each_product(op.in.size(), places_of, [&](const std::vector<size_t>& from) {
    plan::ActionSet set{op.op, program.mesh, {}, op.rows, {}, plan::Parity::kExact};
    for (size_t k = 0; k < op.in.size(); ++k) {
      const auto on = *std::next(values.at(op.in[k]).begin(), static_cast<std::ptrdiff_t>(from[k]));
      set.operands.push_back(operand_of(program, op.in[k], on));
    }
    set = build_action_set(std::move(set));
    const auto rows_of = [&](size_t) { return set.rows.size(); };
    for_each_product(program.mesh.axes().size(), rows_of, [&](const std::vector<size_t>& rows) {
      if (!can_run(set, rows, allowed)) return;
      plan::Values after = values;
      std::vector<Placement> result;
      for (const size_t row : rows) result.push_back(set.rows[row].result);
      after[op.out.front()] = {result};
      for (size_t k = 0; k < op.in.size(); ++k) {
        std::vector<Placement> taken;
        for (const size_t row : rows) taken.push_back(set.rows[row].operands[k]);
        after[op.in[k]].insert(taken);
      }
      const i64 rest = fewest(program, next + 1, after, allowed);
      if (rest < std::numeric_limits<i64>::max()) best = std::min(best, rest + price_of(set, rows));
    });
  });
  return best;
}

/// One or two mesh axes.
mesh::Mesh small_mesh() {
  std::vector<mesh::MeshAxis> axes{{"tp", *gen::between(2, 4)}};
  if (*gen::between(0, 1) == 1) axes.push_back({"dp", 2});
  return mesh::Mesh(std::move(axes));
}

/// Any program of so many ops over a mesh.
Program any_program(const mesh::Mesh& mesh, i64 ops) {
  ProgramBuilder b(mesh);
  const auto any_of = [&](std::initializer_list<Placement> choices) {
    std::vector<Placement> on;
    for (size_t a = 0; a < mesh.axes().size(); ++a)
      on.push_back(*rc::gen::elementOf(std::vector<Placement>(choices)));
    return on;
  };
  const auto extent = [] { return *rc::gen::element<i64>(3, 4, 12, 24, 36); };
  const i64 m = extent(), k = extent();
  b.operand("x", {m, k}, any_of({kR, kS0, kS1, kP})).operand("w", {k, k}, any_of({kR, kS0, kS1}));
  std::string last = "x";
  for (i64 i = 0; i < ops; ++i) {
    const std::string made = "v" + std::to_string(i);
    switch (*gen::between(0, 3)) {
      case 0:
        b.matmul(made, last, "w");
        break;
      case 1:
        b.add(made, "x", last);
        break;
      case 2:
        b.norm(made, last);
        break;
      default:
        b.relu(made, last);
    }
    last = made;
  }
  return b.build();
}

/// Returns the bytes of a plan; nullopt if no allowed moves run all ops.
std::optional<i64> bytes_of(const std::function<i64()>& plan) {
  std::optional<i64> bytes;
  const auto error = testing::error_of([&] { bytes = plan(); });
  if (error && error->code() != ErrorCode::kPlacement) throw Error(*error);
  return bytes;
}

/// Returns the values of the first program that ops from `next` on read.
std::set<std::string> read_from(const Program& program, size_t next) {
  std::set<std::string> read;
  for (size_t i = next; i < program.ops.size(); ++i)
    read.insert(program.ops[i].in.begin(), program.ops[i].in.end());
  for (size_t i = next; i < program.ops.size(); ++i) read.erase(program.ops[i].out.front());
  return read;
}

}  // namespace

TEST_CASE("the joint plan is the cheapest of all, tried one by one") {
  CHECK(rc::check("plan_together = the least of all sequences of actions", [] {
    const mesh::Mesh mesh = small_mesh();
    const i64 most = mesh.axes().size() == 1 ? 4 : 2;
    const Program program = any_program(mesh, *gen::between(2, most));
    const auto allowed = *rc::gen::element(AllowedMoves{}, AllowedMoves::all());
    plan::Values values;
    for (const auto& operand : program.operands) values[operand.name] = {operand.on};
    RC_ASSERT(plan_together(program, allowed).bytes == fewest(program, 0, values, allowed));
  }));
}

TEST_CASE("a chain is as cheap as its programs in one piece, wherever they are cut") {
  CHECK(rc::check("exact chain", [] {
    const Program whole = any_program(small_mesh(), *gen::between(2, 7));
    const mesh::Mesh& mesh = whole.mesh;
    const auto allowed = *rc::gen::element(AllowedMoves{}, AllowedMoves::all(),
                                           AllowedMoves::none(), AllowedMoves::partials_only());
    const auto cut = *gen::between(1, std::ssize(whole.ops) - 1);
    Program first{mesh, whole.operands, {whole.ops.begin(), whole.ops.begin() + cut}};
    Program second{mesh, {}, {whole.ops.begin() + cut, whole.ops.end()}};
    for (const std::string& name : read_from(whole, static_cast<size_t>(cut))) {
      first.kept.emplace_back(name, name);
      const auto none = std::vector<Placement>(mesh.axes().size(), Placement::unknown());
      second.operands.push_back(operand_of(whole, name, none));
    }
    const plan::Chain chain{{&first, &second}, {{0, 0}, {1, 0}}};
    const auto best = bytes_of([&] { return plan_together(chain, allowed).bytes; });
    RC_ASSERT(best == bytes_of([&] { return plan_together(whole, allowed).bytes; }));
    const auto by_link = bytes_of([&] { return plan_by_link(chain, allowed).bytes; });
    RC_TAG(best.has_value(), by_link.has_value());
    if (by_link) RC_ASSERT(*best <= *by_link);
  }));
}

TEST_CASE("values of three mesh axes are planned together in few states") {
  // A layer with its residual stream cut over two axes: above 100,000 states in a naive search.
  const mesh::Mesh mesh({{"dp", 2}, {"ep", 2}, {"tp", 4}});
  ProgramBuilder b(mesh);
  b.operand("x", {512, 4096}, {kS0, kR, kR});
  for (const char* name : {"wq", "wk", "wv"}) b.operand(name, {4096, 4096}, {kR, kR, kS1});
  b.operand("wo", {4096, 4096}, {kR, kR, kS0});
  b.norm("h", "x").matmul("q", "h", "wq").matmul("k", "h", "wk").matmul("v", "h", "wv");
  b.attend("c", "q", "k", "v").matmul("o", "c", "wo").add("y", "x", "o").norm("m", "y");
  // One all_reduce over tp of the half of 512 rows that a group of dp has: 2 x 3/4 of 2 MiB.
  CHECK(plan_together(b.build(), {}).bytes <= 3 * 1024 * 1024);
}
