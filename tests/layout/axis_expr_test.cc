#include "lib/layout/axis_expr.h"

#include <doctest/doctest.h>

#include <limits>

#include "lib/layout/sections.h"
#include "tests/support/generators.h"
#include "tests/support/held.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::testing;
using layout::AxisExpr;
using layout::concat;
using layout::cuts;
using layout::kCeil;
using layout::kExact;
using layout::nest;
using layout::owners;
using layout::pad;
using layout::padded;
using layout::repeat;
using layout::scale;
using layout::split;
using layout::whole;
using mesh::Mesh;

namespace {
const Mesh kSquare({{"dp", 2}, {"tp", 2}});
}

TEST_CASE("whole and a split over nothing are everything on every device") {
  CHECK(held(whole(5), tp(2)) == Held{"[0, 5)", "[0, 5)"});
  CHECK(held(split(5, {}), tp(2)) == Held{"[0, 5)", "[0, 5)"});
}

TEST_CASE("a part of a mesh axis replicates: on tp=8, tp:(1)4 gives ranks 0 and 1 head 0") {
  CHECK(held(split(4, {{"tp", 1, 4}}), tp(8)) ==
        Held{"[0, 1)", "[0, 1)", "[1, 2)", "[1, 2)", "[2, 3)", "[2, 3)", "[3, 4)", "[3, 4)"});
}

TEST_CASE("several mesh axes cut in the order given: dp1 tp0 and dp0 tp1 trade places") {
  CHECK(held(split(8, {{"tp"}, {"dp"}}), kSquare) == Held{"[0, 2)", "[4, 6)", "[2, 4)", "[6, 8)"});
  CHECK(held(split(8, {{"dp"}, {"tp"}}), kSquare) == Held{"[0, 2)", "[2, 4)", "[4, 6)", "[6, 8)"});
}

TEST_CASE("10 rows over a 2 x 2 mesh: flat cuts 3, 3, 2, 2, nested cuts 3, 2, 3, 2") {
  CHECK(extents(split(10, {{"dp"}, {"tp"}}), kSquare) == std::vector<i64>{3, 3, 2, 2});
  CHECK(held(nest(split(10, {{"dp"}}), {{"tp"}}), kSquare) ==
        Held{"[0, 3)", "[3, 5)", "[5, 8)", "[8, 10)"});
  CHECK(extents(nest(split(9, {{"dp"}}), {{"tp"}}), kSquare) == std::vector<i64>{3, 2, 2, 2});
}

TEST_CASE("nest cuts the local axis, sections and all") {
  const AxisExpr fused = repeat(2, split(8, {{"tp"}}));
  CHECK(held(nest(fused, {{"dp"}}), kSquare) == Held{"[0, 4)", "[4, 8)", "[8, 12)", "[12, 16)"});
  CHECK(held(nest(repeat(2, split(6, {{"tp"}})), {{"dp"}}, kCeil), Mesh({{"dp", 4}, {"tp", 2}})) ==
        Held{"[0, 2)", "[3, 5)", "[2, 3) [6, 7)", "[5, 6) [9, 10)", "[7, 9)", "[10, 12)", "nothing",
             "nothing"});
}

TEST_CASE("a product with an inner axis that is padded or reordered is no scale") {
  CHECK(to_string(product(split(2, kTp), whole(3))) == "Scale(Split(2, tp), 3)");
  CHECK(held(product(split(2, kTp), split(3, {}, padded(4))), tp(2)) ==
        Held{"[0, 3) pad 1", "[3, 6) pad 1"});
  CHECK(held(product(split(2, kTp), owners(2, {{1, 0}}, {})), tp(2)) ==
        Held{"[1, 2) [0, 1)", "[3, 4) [2, 3)"});
}

TEST_CASE("cuts and owners say what each part has") {
  CHECK(held(cuts({0, 5, 5, 7}, kTp), tp(3)) == Held{"[0, 5)", "nothing", "[5, 7)"});
  CHECK(held(owners(4, {{0, 2}, {1, 3}}, kTp), tp(2)) == Held{"[0, 1) [2, 3)", "[1, 2) [3, 4)"});
  CHECK(held(owners(3, {{2, 0, 1}, {0, 1}}, kTp), tp(2)) == Held{"[2, 3) [0, 2)", "[0, 2)"});
}

TEST_CASE("lists of another length than the number of parts are refused") {
  CHECK_ERROR(kStrategy, evaluate(cuts({0, 5}, kTp), tp(2), 0));
  CHECK_ERROR(kStrategy, evaluate(owners(2, {{0}, {1}, {}}, kTp), tp(2), 0));
}

TEST_CASE("concat and scale: fused QKV under grouped-query attention") {
  const AxisExpr q = scale(split(32, kTp), 128);
  const AxisExpr kv = scale(split(8, kTp), 128);
  const auto all = held(concat({q, kv, kv}), tp(4));
  CHECK(all.front() == "[0, 1024) [4096, 4352) [5120, 5376)");
  CHECK(all.back() == "[3072, 4096) [4864, 5120) [5888, 6144)");
}

TEST_CASE("sections begin where those before them end, also of an axis that is cut again") {
  const AxisExpr qkv = concat({split(8, {{"tp"}}), split(2, {{"tp"}}), whole(2)});
  CHECK(section_begins(qkv) == std::vector<i64>{0, 8, 10});
  CHECK(section_begins(scale(qkv, 64)) == std::vector<i64>{0, 512, 640});
  CHECK(section_begins(nest(pad(qkv), {{"fsdp"}})) == std::vector<i64>{0, 8, 10});
  CHECK(section_begins(split(8, {{"tp"}})).empty());
}

TEST_CASE("pad makes every local extent the largest") {
  CHECK(held(pad(split(10, kTp)), tp(4)) ==
        Held{"[0, 3)", "[3, 6)", "[6, 8) pad 1", "[8, 10) pad 1"});
  CHECK(held(pad(split(3, kTp)), tp(4)) == Held{"[0, 1)", "[1, 2)", "[2, 3)", "pad 1"});
}

TEST_CASE("a node that makes no sense by itself is refused") {
  CHECK_ERROR(kStrategy, whole(-1));
  CHECK_ERROR(kStrategy, split(-1, kTp));
  CHECK_ERROR(kStrategy, split(4, kTp, padded(0)));
  CHECK_ERROR(kStrategy, cuts({}, kTp));
  CHECK_ERROR(kStrategy, cuts({1, 4}, kTp));
  CHECK_ERROR(kStrategy, cuts({0, 4, 3}, kTp));
  CHECK_ERROR(kStrategy, owners(-1, {{}}, kTp));
  CHECK_ERROR(kStrategy, owners(2, {{0, 0}}, kTp));
  CHECK_ERROR(kStrategy, owners(2, {{2}}, kTp));
  CHECK_ERROR(kStrategy, owners(2, {{-1}}, kTp));
  CHECK_ERROR(kStrategy, scale(whole(4), 0));
  CHECK_ERROR(kStrategy, concat({}));
  CHECK_ERROR(kStrategy, repeat(0, whole(4)));
  CHECK_ERROR(kStrategy, nest(whole(4), kTp, padded(0)));
}

TEST_CASE("axes beyond 2^63 are refused") {
  constexpr i64 kHalf = std::numeric_limits<i64>::max() / 2 + 1;
  CHECK_ERROR(kLimit, scale(whole(kHalf), 2).size());
  CHECK_ERROR(kLimit, repeat(2, whole(kHalf)).size());
  CHECK_ERROR(kLimit, evaluate(repeat(2, whole(kHalf)), tp(1), 0));
}

TEST_CASE("mesh axes that are not there, or no parts, are refused") {
  CHECK_ERROR(kUnknownName, evaluate(split(8, {{"ep"}}), tp(4), 0));
  CHECK_ERROR(kMesh, evaluate(split(8, {{"tp", 1, 3}}), tp(4), 0));
  CHECK_ERROR(kNotDivisible, evaluate(split(10, kTp, kExact), tp(4), 0));
}

TEST_CASE("the mesh axes of an expression are listed once each, in order") {
  const AxisExpr e =
      concat({split(4, {{"tp"}}), nest(split(4, {{"ep"}}), {{"dp"}}), split(2, {{"tp"}})});
  CHECK(axes_used(e) == std::vector<mesh::AxisRef>{{"tp"}, {"ep"}, {"dp"}});
  CHECK(overs(e).size() == 4);
  CHECK(e.is_sharded());
  CHECK_FALSE(concat({whole(4), split(2, {})}).is_sharded());
}

TEST_CASE("expressions print as they are written in the documents") {
  const AxisExpr heads = split(32, kTp);
  CHECK(to_string(whole(7)) == "Whole(7)");
  CHECK(to_string(scale(heads, 128)) == "Scale(Split(32, tp), 128)");
  CHECK(to_string(scale(heads, 1)) == "Split(32, tp)");
  CHECK(to_string(repeat(3, scale(heads, 128))) == "Repeat(3, Scale(Split(32, tp), 128))");
  CHECK(to_string(repeat(1, heads)) == "Split(32, tp)");
  CHECK(to_string(concat({heads, whole(2)})) == "Concat(Split(32, tp), Whole(2))");
  CHECK(to_string(split(8, {{"ep"}, {"tp", 1, 4}}, kCeil)) == "Split(8, ep*tp:(1)4, ceil)");
  CHECK(to_string(nest(heads, {{"dp"}}, padded(64))) == "Nest(Split(32, tp), dp, padded(64))");
  CHECK(to_string(cuts({0, 3, 8}, kTp)) == "Cuts([0, 3, 8], tp)");
  CHECK(to_string(owners(3, {{0, 2}, {1}}, kTp)) == "Owners(3, [[0, 2], [1]], tp)");
  CHECK(to_string(pad(heads)) == "Pad(Split(32, tp))");
}
