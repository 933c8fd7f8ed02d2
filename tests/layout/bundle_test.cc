#include "lib/layout/bundle.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/support/generators.h"
#include "tests/support/held.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::testing;
using layout::AxisExpr;
using layout::block_scale;
using layout::Layout;
using layout::LayoutAxis;
using layout::member_layout;
using layout::per_index;
using layout::per_tensor;
using layout::same_axes;
using layout::scale;
using layout::split;
using layout::whole;

namespace {

Layout weight(const mesh::Mesh& mesh, AxisExpr rows, AxisExpr columns) {
  const Shape shape{rows.size(), columns.size()};
  return Layout(mesh, shape, {{std::move(rows), 1, "rows"}, {std::move(columns), 1, "columns"}});
}

}  // namespace

TEST_CASE(
    "a member's cut is the leader's cut in blocks: every device has the blocks of its elements") {
  CHECK(rc::check("blocks touched = blocks held", [] {
    const mesh::Mesh mesh = *gen::mesh();
    const i64 block = *gen::between(1, 4);
    const i64 n = *gen::between(1, 24);
    const AxisExpr expr = *gen::axis_expr(n, mesh, *gen::directions(mesh));
    const Layout leader(mesh, {n}, {{expr, 1, {}}});
    std::optional<Layout> scales;
    const auto refused = error_of([&] {
      scales = member_layout(leader, block_scale({ceil_div(n, block)}, {block}));
      return 0;
    });
    RC_CLASSIFY(scales.has_value(), "aligned");
    if (refused) {
      RC_ASSERT(refused->code() == ErrorCode::kBlockStraddle);
      return;
    }
    for (i64 rank = 0; rank < mesh.size(); ++rank) {
      std::vector<i64> touched;
      for (const i64 i : reference::indices((*leader.region(rank))[0])) {
        if (i != reference::kPadding && (touched.empty() || touched.back() != i / block)) {
          touched.push_back(i / block);
        }
      }
      std::vector<i64> have;
      for (const i64 i : reference::indices((*scales->region(rank))[0])) {
        if (i != reference::kPadding) have.push_back(i);
      }
      RC_ASSERT(have == touched);
    }
  }));
}

TEST_CASE("14336 x 4096 in blocks of 128 has scales 112 x 32, cut where the weight is cut") {
  const auto by_rows = weight(tp(4), split(14336, kTp), whole(4096));
  CHECK(held(by_rows, 0)[1] == "[3584, 7168)");
  const Layout row_scales = member_layout(by_rows, block_scale({112, 32}, {128, 128}));
  CHECK(held(row_scales, 0) == Held{"[0, 28)", "[28, 56)", "[56, 84)", "[84, 112)"});
  CHECK(held(row_scales, 1)[3] == "[0, 32)");

  const auto by_columns = weight(tp(4), whole(14336), split(4096, kTp));
  const Layout column_scales = member_layout(by_columns, block_scale({112, 32}, {128, 128}));
  CHECK(held(column_scales, 1) == Held{"[0, 8)", "[8, 16)", "[16, 24)", "[24, 32)"});
  CHECK_ERROR(kBlockStraddle, member_layout(weight(tp(3), split(14336, kTp), whole(4096)),
                                            block_scale({112, 32}, {128, 128})));
}

TEST_CASE("10 heads of 128 in blocks of 128 over 4 devices are exact, though 10 % 4 != 0") {
  const auto o_proj = weight(tp(4), whole(256), scale(split(10, kTp), 128));
  CHECK(held(member_layout(o_proj, block_scale({2, 10}, {128, 128})), 1) ==
        Held{"[0, 3)", "[3, 6)", "[6, 8)", "[8, 10)"});
}

TEST_CASE(
    "8 heads of 96 in blocks of 128 over 3 devices straddle: refused with the cut and the block") {
  const auto o_proj = weight(tp(3), whole(128), scale(split(8, kTp), 96));
  const auto refused = error_of([&] {
    return member_layout(o_proj, block_scale({1, 6}, {128, 128}));
  });
  REQUIRE(refused);
  CHECK(refused->code() == ErrorCode::kBlockStraddle);
  CHECK(refused->message() ==
        "the cut of axis 1 'columns' at index 288 falls inside a block of 128: 288 % 128 = 32");
}

TEST_CASE("1100 rows in blocks of 128 over 3 devices straddle") {
  const auto rows = weight(tp(3), split(1100, kTp), whole(128));
  CHECK_ERROR(kBlockStraddle, member_layout(rows, block_scale({9, 1}, {128, 128})));
}

TEST_CASE("the last block of an axis may be partial") {
  const auto rows = weight(tp(2), layout::cuts({0, 1024, 1100}, kTp), whole(64));
  CHECK(held(member_layout(rows, block_scale({9, 1}, {128, 64})), 0) == Held{"[0, 8)", "[8, 9)"});
}

TEST_CASE("values per row or per column follow that axis, values per tensor are everywhere") {
  const auto both =
      weight(mesh::Mesh({{"tp", 2}, {"dp", 2}}), split(10, {{"tp"}}), split(6, {{"dp"}}));
  const Layout rows = member_layout(both, per_index({10, 1}, 0));
  CHECK(held(rows, 0) == Held{"[0, 5)", "[0, 5)", "[5, 10)", "[5, 10)"});
  CHECK(held(rows, 1)[0] == "[0, 1)");
  CHECK(held(member_layout(both, per_index({10}, 0)), 0)[3] == "[5, 10)");
  const Layout columns = member_layout(both, per_index({1, 6}, 1));
  CHECK(held(columns, 1) == Held{"[0, 3)", "[3, 6)", "[0, 3)", "[3, 6)"});
  CHECK_FALSE(member_layout(both, per_tensor({1})).is_sharded());
  CHECK(member_layout(both, per_tensor({})).region(3)->empty());
  CHECK(held(member_layout(both, same_axes({10, 6})), 0) == held(both, 0));
}

TEST_CASE("shared and refined blocks: every element's block is on its device") {
  CHECK(rc::check("blocks(rank) has the block of every held element", [] {
    const mesh::Mesh mesh = *gen::mesh();
    const i64 block = *gen::between(2, 6);
    const i64 n = *gen::between(1, 24);
    const auto straddling =
        *rc::gen::element(layout::Straddling::kShare, layout::Straddling::kRefine);
    const AxisExpr expr = *gen::axis_expr(n, mesh, *gen::directions(mesh));
    const Layout leader(mesh, {n}, {{expr, 1, {}}});
    std::optional<Layout> scales;
    const auto refused = error_of([&] {
      scales = member_layout(leader, block_scale({ceil_div(n, block)}, {block}), straddling);
      return 0;
    });
    RC_CLASSIFY(scales.has_value(), "accepted");
    if (refused) {
      RC_ASSERT(refused->code() == ErrorCode::kBlockStraddle);  // shared blocks together with
                                                                // padding
      return;
    }
    const i64 refinement = scales->refinement()[0];
    for (i64 rank = 0; rank < mesh.size(); ++rank) {
      const index::AxisMap blocks = scales->blocks(rank, 0);
      const index::AxisMap where = index::inverse(blocks);
      for (const i64 i : reference::indices((*leader.region(rank))[0])) {
        if (i != reference::kPadding) RC_ASSERT(where(i / (block / refinement)).has_value());
      }
      const index::AxisMap region = (*scales->region(rank))[0];
      RC_ASSERT(blocks.local_size() == region.local_size());
      for (i64 local = 0; local < region.local_size(); ++local) {
        const auto refined = blocks(local);
        const bool is_first = refined && *refined % refinement == 0;
        RC_ASSERT(region(local) ==
                  (is_first ? std::optional(*refined / refinement) : std::nullopt));
      }
    }
  }));
}

TEST_CASE("a bias of a stacked projection has the weight's sections") {
  // heads 4, head_dim 2, N 2: not the contiguous [0, 12), which is all of Q and half of K.
  const auto qkv = weight(tp(2), layout::repeat(3, scale(split(4, kTp), 2)), whole(8));
  CHECK(held(member_layout(qkv, per_index({24}, 0)), 0)[0] == "[0, 4) [8, 12) [16, 20)");
}

TEST_CASE("a member lives on the devices of its leader") {
  const layout::IndexAxis layer{"layers", split(4, kTp), 3};
  const Layout leader(tp(2), {8, 8}, {{whole(8), 1, {}}, {whole(8), 1, {}}}, {layer});
  CHECK(member_layout(leader, per_tensor({1})).ranks() == std::vector<i64>{1});
}

TEST_CASE("packed members count logical indices: a granularity of a granularity") {
  // 64 int4 columns in 8 int32 words, with a scale per 32 elements.
  const Layout packed(tp(2), {8}, {{split(64, kTp), 8, {}}});
  CHECK(held(packed, 0) == Held{"[0, 4)", "[4, 8)"});
  CHECK(held(member_layout(packed, block_scale({2}, {4})), 0) == Held{"[0, 1)", "[1, 2)"});
}

TEST_CASE("members that do not fit are refused") {
  const auto leader = weight(tp(2), split(10, kTp), whole(6));
  CHECK_ERROR(kShapeMismatch, member_layout(leader, same_axes({10, 7})));
  CHECK_ERROR(kShapeMismatch, member_layout(leader, block_scale({5, 3}, {2, 3})));
  CHECK_ERROR(kShapeMismatch, member_layout(leader, per_index({6}, 2)));
  CHECK_ERROR(kShapeMismatch, block_scale({5, 3}, {2}));
  CHECK_ERROR(kStrategy, member_layout(leader, block_scale({5, 3}, {0, 2})));
  const Layout packed(tp(2), {8}, {{split(64, kTp), 8, {}}});
  CHECK_ERROR(kLimit, member_layout(packed, block_scale({8}, {std::numeric_limits<i64>::max()})));
}
