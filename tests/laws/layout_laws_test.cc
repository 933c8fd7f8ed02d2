// Laws of expressions and layouts, for all eight nodes over any mesh.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "lib/layout/gathered.h"
#include "tests/support/generators.h"

using namespace shardtool;
using layout::AxisExpr;
using layout::Layout;
using mesh::Mesh;

namespace {

struct ExprCase {
  Mesh mesh;
  AxisExpr expr;
};
ExprCase any_expr() {
  const Mesh mesh = *gen::mesh();
  const mesh::Over directions = *gen::directions(mesh);
  return {mesh, *gen::axis_expr(*gen::between(0, 16), mesh, directions)};
}

/// Elements that a device holds, without padding.
std::set<i64> image_of(const AxisExpr& expr, const Mesh& mesh, i64 rank) {
  const auto indices = reference::indices(evaluate(expr, mesh, rank));
  std::set<i64> image(indices.begin(), indices.end());
  image.erase(reference::kPadding);
  return image;
}

/// True if every use of the axis is of all of it, and no list of parts needs it.
bool can_join(const AxisExpr& expr, const std::string& axis) {
  const std::string text = to_string(expr);
  if (text.find("Cuts") != text.npos || text.find("Owners") != text.npos) return false;
  return std::ranges::all_of(
      axes_used(expr), [&](const mesh::AxisRef& ref) { return ref.axis != axis || ref.whole(); });
}

}  // namespace

TEST_CASE("a device order renames the holders and changes nothing else") {
  CHECK(rc::check("device order", [] {
    const auto [mesh, expr] = any_expr();
    const Mesh ordinary({mesh.axes().begin(), mesh.axes().end()});
    for (i64 rank = 0; rank < mesh.size(); ++rank) {
      const i64 cell = ordinary.rank(mesh.coordinate(rank));
      RC_ASSERT(evaluate(expr, mesh, rank) == evaluate(expr, ordinary, cell));
    }
  }));
}

TEST_CASE("gathered along a mesh axis an expression is that over one device along it") {
  CHECK(rc::check("gathered", [] {
    const auto [mesh, expr] = any_expr();
    RC_PRE(!mesh.axes().empty());
    const auto left_out = static_cast<size_t>(*gen::between(0, std::ssize(mesh.axes()) - 1));
    const std::string name = mesh.axes()[left_out].name;
    RC_PRE(can_join(expr, name));
    const AxisExpr rest = gathered(expr, {name});
    std::vector<mesh::MeshAxis> axes(mesh.axes().begin(), mesh.axes().end());
    axes[left_out].size = 1;
    const Mesh narrow(axes);
    for (i64 rank = 0; rank < mesh.size(); ++rank) {
      mesh::Coordinate at = mesh.coordinate(rank);
      at[left_out] = 0;
      RC_ASSERT(image_of(rest, mesh, rank) == image_of(expr, narrow, narrow.rank(at)));
    }
  }));
}

TEST_CASE("an expression evaluates to the definition of its nodes") {
  CHECK(rc::check("evaluate == index by index, on every device", [] {
    const auto [mesh, expr] = any_expr();
    for (i64 rank = 0; rank < mesh.size(); ++rank) {
      const auto map = evaluate(expr, mesh, rank);
      RC_ASSERT(map.global_size() == expr.size());
      RC_ASSERT(reference::indices(map) == reference::held_indices(expr, mesh, rank));
    }
  }));
}

TEST_CASE("every expression is complete: the devices together hold every index") {
  CHECK(rc::check("L2", [] {
    const auto [mesh, expr] = any_expr();
    std::set<i64> held;
    for (i64 rank = 0; rank < mesh.size(); ++rank) {
      for (const i64 i : reference::indices(evaluate(expr, mesh, rank))) held.insert(i);
    }
    held.erase(reference::kPadding);
    RC_ASSERT(static_cast<i64>(held.size()) == expr.size());
  }));
}

TEST_CASE("a device holds the same as another that differs on unused mesh axes only") {
  CHECK(rc::check("the map depends on the index along axes_used", [] {
    const auto [mesh, expr] = any_expr();
    std::map<std::vector<i64>, index::AxisMap> by_index;
    for (i64 rank = 0; rank < mesh.size(); ++rank) {
      std::vector<i64> along;
      for (const auto& ref : axes_used(expr)) along.push_back(index_along(mesh, ref, rank));
      const auto map = evaluate(expr, mesh, rank);
      RC_ASSERT(by_index.emplace(along, map).first->second == map);
    }
    RC_ASSERT(expr.is_sharded() == !axes_used(expr).empty());
  }));
}

TEST_CASE("Pad gives every device the same local extent and moves nothing") {
  CHECK(rc::check("Pad", [] {
    const auto [mesh, expr] = any_expr();
    const AxisExpr padded = layout::pad(expr);
    const i64 extent = evaluate(padded, mesh, 0).local_size();
    bool reached = false;
    for (i64 rank = 0; rank < mesh.size(); ++rank) {
      const auto map = evaluate(expr, mesh, rank);
      RC_ASSERT(evaluate(padded, mesh, rank) == index::pad(map, extent));
      reached = reached || map.local_size() == extent;
    }
    RC_ASSERT(reached);
  }));
}

TEST_CASE("a layout's regions are the products of its axes, and its holders are the devices") {
  CHECK(rc::check("Layout == its expressions", [] {
    const Layout layout = *gen::layout(*gen::shape());
    RC_ASSERT(static_cast<i64>(layout.ranks().size()) == layout.mesh().size());
    for (i64 rank = 0; rank < layout.mesh().size(); ++rank) {
      RC_ASSERT(layout.ranks()[static_cast<size_t>(rank)] == rank);
      index::Region expected;
      for (const auto& axis : layout.axes())
        expected.push_back(evaluate(axis.expr, layout.mesh(), rank));
      RC_ASSERT(layout.region(rank) == expected);
      RC_ASSERT(layout.holders().region(static_cast<int>(rank)) == expected);
    }
  }));
}

TEST_CASE("the queries of a layout are those of its regions") {
  CHECK(rc::check("is_even, first_empty_shard", [] {
    const Layout layout = *gen::layout(*gen::shape());
    const bool empty_tensor = element_count(layout.shape()) == 0;
    std::optional<i64> empty;
    for (i64 rank = layout.mesh().size(); rank-- > 0;) {
      if (image_size(*layout.region(rank)) == 0 && !empty_tensor) empty = rank;
    }
    RC_ASSERT(layout.first_empty_shard() == empty);
  }));
}

TEST_CASE("devices with equal indices along all used axes are replicas of each other") {
  CHECK(rc::check("replicas", [] {
    const Layout layout = *gen::layout(*gen::shape());
    std::map<std::vector<i64>, int> first;
    for (i64 rank = 0; rank < layout.mesh().size(); ++rank) {
      std::vector<i64> along;
      for (const auto& axis : layout.axes()) {
        for (const auto& ref : axes_used(axis.expr))
          along.push_back(index_along(layout.mesh(), ref, rank));
      }
      const int holder = first.emplace(along, static_cast<int>(rank)).first->second;
      const auto replicas = layout.holders().replicas(static_cast<int>(rank));
      RC_ASSERT(std::find(replicas.begin(), replicas.end(), holder) != replicas.end());
    }
  }));
}

TEST_CASE("a scaled expression coarsens back to its units") {
  CHECK(rc::check("a granularity g over scale(e, g) is e", [] {
    const auto [mesh, expr] = any_expr();
    const i64 g = *gen::between(2, 5);
    const Layout coarse(mesh, {expr.size()}, {{layout::scale(expr, g), g, {}}});
    for (i64 rank = 0; rank < mesh.size(); ++rank) {
      RC_ASSERT((*coarse.region(rank))[0] == evaluate(expr, mesh, rank));
    }
  }));
}
