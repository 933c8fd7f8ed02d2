#include "lib/plan/placement/redistribute.h"

#include <doctest/doctest.h>

#include "tests/plan/placed.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

using namespace shardtool;
using plan::cut;
using plan::elements_lacking;
using plan::even_shape;
using plan::layout_of;
using plan::Move;
using plan::Placement;
using plan::Placements;
using plan::redistribute;

namespace {

/// Random placements on the mesh: axes in any order, with Partial if `with_partial`.
Placements any_placements(const mesh::Mesh& mesh, int rank, bool with_partial) {
  Placements placements = plan::replicated(mesh, rank);
  std::vector<int> axes(mesh.axes().size());
  for (size_t a = 0; a < axes.size(); ++a) axes[a] = static_cast<int>(a);
  while (!axes.empty()) {
    const int a = *rc::gen::elementOf(axes);
    std::erase(axes, a);
    const i64 choice = *gen::between(with_partial ? -2 : -1, rank - 1);
    Placement& on = placements.on[static_cast<size_t>(a)];
    if (choice == -2) on = Placement::partial();
    if (choice < 0) continue;
    on = Placement::sharded(static_cast<int>(choice));
    placements.order[static_cast<size_t>(choice)].push_back(a);
  }
  return placements;
}

mesh::Mesh any_mesh() {
  std::vector<mesh::MeshAxis> axes;
  const i64 count = *gen::between(1, 4);
  const i64 most = count == 4 ? 2 : 3;
  for (i64 a = 0; a < count; ++a) {
    axes.push_back({std::string(1, static_cast<char>('w' + a)), *gen::between(1, most)});
  }
  return mesh::Mesh(std::move(axes));
}

std::string steps_of(const mesh::Mesh& mesh, const Shape& shape, const Placements& from,
                     const Placements& to) {
  const auto way = redistribute(mesh, shape, from, to);
  REQUIRE(way);
  std::string text;
  for (const auto& step : way->steps) text += (text.empty() ? "" : "; ") + to_string(step, mesh);
  return text;
}

}  // namespace

TEST_CASE("the cost of redistribution is a metric") {
  CHECK(rc::check("triangle inequality, and nothing for nothing", [] {
    const auto mesh = any_mesh();
    const int rank = static_cast<int>(*gen::between(1, 3));
    const auto shape = even_shape(mesh, rank);
    const auto a = any_placements(mesh, rank, true);
    const auto b = any_placements(mesh, rank, true);
    const auto c = any_placements(mesh, rank, false);
    const auto ac = redistribute(mesh, shape, a, c);
    const auto ab = redistribute(mesh, shape, a, b);
    const auto bc = redistribute(mesh, shape, b, c);
    RC_ASSERT(ac.has_value());
    RC_ASSERT(bc.has_value());
    RC_CLASSIFY(ab.has_value(), "three ways");
    if (ab) RC_ASSERT(ac->elements <= ab->elements + bc->elements);
    const auto aa = redistribute(mesh, shape, a, a);
    RC_ASSERT((aa && aa->elements == 0 && aa->steps.empty()));
  }));
}

TEST_CASE("every collective moves what the join of its two layouts says is lacking") {
  CHECK(
      rc::check("two derivations of the bytes of a step; the way is no cheaper than the bound", [] {
        const auto mesh = any_mesh();
        const int rank = static_cast<int>(*gen::between(1, 3));
        const auto shape = even_shape(mesh, rank);
        const auto from = any_placements(mesh, rank, false);
        const auto to = any_placements(mesh, rank, false);
        const auto way = redistribute(mesh, shape, from, to);
        RC_ASSERT(way.has_value());
        Placements before = from;
        for (const auto& step : way->steps) {
          RC_ASSERT(elements_lacking(layout_of(mesh, shape, before),
                                     layout_of(mesh, shape, step.after)) == step.elements);
          before = step.after;
        }
        RC_ASSERT(before == to);
        RC_ASSERT(way->elements >=
                  elements_lacking(layout_of(mesh, shape, from), layout_of(mesh, shape, to)));
      }));
}

TEST_CASE("one collective on one mesh axis moves the bytes of the table") {
  CHECK(rc::check("elements = devices * wire bytes of collective_for", [] {
    const auto from = *rc::gen::element(Placement::sharded(1), Placement::partial());
    const auto to = *rc::gen::element(Placement::replicated(), Placement::sharded(0));
    // The other axis always cuts tensor axis 0, so that a group owns only a part.
    const mesh::Mesh mesh({{"y", *gen::between(1, 3)}, {"x", *gen::between(2, 4)}});
    const Shape shape{mesh.size() * 2, mesh.size()};
    const auto other = Placement::sharded(0);
    const auto way = redistribute(mesh, shape, plan::in_mesh_order({other, from}, 2),
                                  plan::in_mesh_order({other, to}, 2));
    RC_ASSERT((way && way->steps.size() == 1));
    const i64 owned = *element_count(shape) / mesh.axes()[0].size;
    const auto collective =
        plan::collective_for(plan::move_between(from, to), {mesh.axes()[1].size, 1}, owned);
    RC_ASSERT(collective.has_value());
    RC_ASSERT(way->elements == mesh.size() * wire_bytes(*collective));
  }));
}

TEST_CASE("Partial axes of one op are reduced together") {
  const mesh::Mesh mesh({{"dp", 2}, {"tp", 4}});
  const auto partial = plan::in_mesh_order({Placement::partial(), Placement::partial()}, 1);
  CHECK(steps_of(mesh, {8}, partial, plan::replicated(mesh, 1)) == "all_reduce dp, tp");
  CHECK(redistribute(mesh, {8}, partial, plan::replicated(mesh, 1))->elements == 8 * 2 * 7);
  const auto mixed =
      plan::in_mesh_order({Placement::partial(plan::ReduceOp::kMax), Placement::partial()}, 1);
  CHECK(steps_of(mesh, {8}, mixed, plan::replicated(mesh, 1)) ==
        "reduce_scatter dp to axis 0; reduce_scatter tp to axis 0; all_gather dp, tp of axis 0");
}

TEST_CASE("devices that would do the same reduction share it") {
  const mesh::Mesh mesh({{"dp", 2}, {"tp", 2}});
  const auto partial = plan::in_mesh_order({Placement::replicated(), Placement::partial()}, 1);
  // all_reduce of 8 on each: 4 * 8; of halves: 4 * 4, and a gather: 4 * 4. Equal, so the one step.
  CHECK(steps_of(mesh, {8}, partial, plan::replicated(mesh, 1)) == "all_reduce tp");
  const mesh::Mesh wide({{"dp", 2}, {"tp", 4}});
  CHECK(steps_of(wide, {8}, partial, plan::replicated(wide, 1)) ==
        "slice dp to axis 0; reduce_scatter tp to axis 0; all_gather dp, tp of axis 0");
}

TEST_CASE("costs that other planners got wrong") {
  // pytorch issue 157585: S(0)S(0) -> S(0)R and -> R S(0) cost alike there; the second moves more
  const mesh::Mesh mesh({{"dp", 2}, {"tp", 4}});
  const auto both = plan::in_mesh_order({Placement::sharded(0), Placement::sharded(0)}, 1);
  const auto outer = plan::in_mesh_order({Placement::sharded(0), Placement::replicated()}, 1);
  const auto inner = plan::in_mesh_order({Placement::replicated(), Placement::sharded(0)}, 1);
  CHECK(redistribute(mesh, {8}, both, outer)->elements == 8 * 3);
  CHECK(redistribute(mesh, {8}, both, inner)->elements > 8);
  // S(0) -> S(1), 8 x 8 over four: 48 elements, 12 per device
  const mesh::Mesh four({{"tp", 4}});
  CHECK(redistribute(four, {8, 8}, cut(four, {{0}, {}}), cut(four, {{}, {0}}))->elements == 48);
}

TEST_CASE("Partial and Unknown are never made, and uneven placements are refused") {
  const mesh::Mesh mesh({{"tp", 4}});
  const auto whole = plan::replicated(mesh, 1);
  CHECK_FALSE(redistribute(mesh, {8}, whole, plan::in_mesh_order({Placement::partial()}, 1)));
  CHECK_FALSE(redistribute(mesh, {8}, plan::in_mesh_order({Placement::unknown()}, 1), whole));
  CHECK_ERROR(kNotDivisible,
              redistribute(mesh, {6}, whole, plan::in_mesh_order({Placement::sharded(0)}, 1)));
  CHECK_ERROR(kLimit, redistribute(mesh, {i64{1} << 62}, whole, whole));
}
