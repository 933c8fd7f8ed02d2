#include "lib/layout/torch_placements.h"

#include <doctest/doctest.h>

#include "lib/layout/layout.h"
#include "tests/support/generators.h"
#include "tests/support/held.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::testing;
using layout::AxisExpr;
using layout::kBalanced;
using layout::kCeil;
using layout::Layout;
using layout::Over;
using layout::Split;
using layout::SplitRule;
using layout::TorchPlacements;
using layout::Whole;

namespace {

TorchPlacements placements(const Layout& layout) {
  return layout::torch_placements(layout.mesh(), layout.holders(), layout.ranks());
}

Layout cut_rows(const mesh::Mesh& mesh, i64 rows, const Over& over, SplitRule rule) {
  return {
      mesh, {rows, 3}, {{AxisExpr(Split{rows, over, rule}), 1, {}}, {AxisExpr(Whole{3}), 1, {}}}};
}

}  // namespace

TEST_CASE("a tensor axis that mesh axes cut evenly in their order is sharded by each of them") {
  CHECK(rc::check("any choice of tensor axes", [] {
    std::vector<mesh::MeshAxis> axes;
    TorchPlacements expected;
    std::vector<Over> over(2);
    Shape shape{1, 1};
    for (const char* name : {"a", "b", "c"}) {
      axes.push_back({name, *gen::between(2, 3)});
      const i64 cut = *gen::between(0, 2);
      expected.push_back(cut < 2 ? std::optional(static_cast<int>(cut)) : std::nullopt);
      if (cut == 2) continue;
      over[static_cast<size_t>(cut)].push_back({name, 1, 0});
      shape[static_cast<size_t>(cut)] *= axes.back().size * *gen::between(1, 2);
    }
    std::vector<layout::LayoutAxis> exprs;
    for (size_t a = 0; a < 2; ++a) {
      exprs.push_back({over[a].empty() ? AxisExpr(Whole{shape[a]})
                                       : AxisExpr(Split{shape[a], over[a], layout::kExact}),
                       1,
                       {}});
    }
    RC_ASSERT(placements(Layout(mesh::Mesh(axes), shape, exprs)) == expected);
  }));
}

TEST_CASE("torch.chunk's uneven parts are shards, others are not") {
  CHECK(placements(cut_rows(tp(4), 10, kTp, kCeil)) == TorchPlacements{0});
  CHECK(placements(cut_rows(tp(4), 3, kTp, kCeil)) == TorchPlacements{0});
  CHECK_ERROR(kUnsupported, placements(cut_rows(tp(4), 10, kTp, kBalanced)));
  CHECK_ERROR(kUnsupported, placements(cut_rows(tp(4), 10, kTp, layout::padded(1))));
}

TEST_CASE(
    "a cut against the order of the mesh, and replicas over a part of an axis, are no DTensor") {
  const mesh::Mesh mesh({{"dp", 2}, {"tp", 2}});
  const Over in_order{{"dp", 1, 0}, {"tp", 1, 0}};
  const Over against{{"tp", 1, 0}, {"dp", 1, 0}};
  CHECK(placements(cut_rows(mesh, 8, in_order, kBalanced)) == TorchPlacements{0, 0});
  CHECK_ERROR(kUnsupported, placements(cut_rows(mesh, 8, against, kBalanced)));
  CHECK_ERROR(kUnsupported, placements(cut_rows(tp(4), 8, {{"tp", 1, 2}}, kBalanced)));
}

TEST_CASE("a tensor that some rank does not hold is no DTensor") {
  const index::HolderSet holders = index::HolderSet::whole({4});
  const std::vector<i64> ranks{0};
  CHECK(layout::torch_placements(tp(1), holders, ranks) == TorchPlacements{std::nullopt});
  CHECK_ERROR(kUnsupported, layout::torch_placements(tp(2), holders, ranks));
}
