#include "lib/layout/layout.h"

#include <doctest/doctest.h>

#include "lib/index/join.h"
#include "tests/support/held.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::testing;
using layout::AxisExpr;
using layout::concat;
using layout::IndexAxis;
using layout::Layout;
using layout::LayoutAxis;
using layout::nest;
using layout::owners;
using layout::scale;
using layout::split;
using layout::whole;
using mesh::Mesh;

namespace {

const Mesh kGrid({{"dp", 2}, {"tp", 4}});

Layout one_axis(const Mesh& mesh, AxisExpr expr, i64 granularity = 1) {
  const i64 stored = ceil_div(expr.size(), granularity);
  return Layout(mesh, {stored}, {{std::move(expr), granularity, {}}});
}

}  // namespace

TEST_CASE("L1: axes that do not fit the tensor are refused") {
  CHECK_ERROR(kShapeMismatch, Layout(kGrid, {8, 8}, {{whole(8), 1, {}}}));
  CHECK_ERROR(kShapeMismatch, Layout(kGrid, {8}, {{whole(9), 1, {}}}));
  CHECK_ERROR(kShapeMismatch, Layout(kGrid, {8}, {{whole(8), 2, {}}}));
  CHECK_ERROR(kStrategy, Layout(kGrid, {8}, {{whole(8), 0, {}}}));
  const auto refused = error_of([] {
    return Layout(kGrid, {640}, {{scale(split(8, {{"tp"}}), 64), 1, "heads*64"}});
  });
  REQUIRE(refused);
  CHECK(refused->message() == "axis 0 'heads*64' has 640 elements, the rule expects 512");
}

TEST_CASE("L2: an index that no device holds is refused") {
  const auto refused = error_of([] { return one_axis(tp(2), owners(4, {{0, 1}, {3}}, kTp)); });
  REQUIRE(refused);
  CHECK(refused->code() == ErrorCode::kStrategy);
  CHECK(refused->message() == "no rank holds index 2 of axis 0 (4 indices)");
  CHECK_ERROR(kStrategy, one_axis(tp(2), owners(4, {{0, 1}, {2}}, kTp)));
  CHECK_ERROR(kStrategy, one_axis(tp(2), owners(4, {{1}, {2, 3}}, kTp)));
}

TEST_CASE("L3: a mesh axis that cuts one tensor twice is refused") {
  const auto two = [](const mesh::Over& rows, const mesh::Over& columns) {
    return Layout(kGrid, {8, 8}, {{split(8, rows), 1, "embed"}, {split(8, columns), 1, "batch"}});
  };
  CHECK_ERROR(kMeshAxisReused, two({{"tp"}}, {{"tp"}}));
  CHECK_ERROR(kMeshAxisReused, two({{"tp"}}, {{"dp"}, {"tp", 2, 2}}));
  CHECK_ERROR(kMeshAxisReused, two({{"tp"}, {"tp"}}, {}));
  CHECK_ERROR(kMeshAxisReused, two({{"tp", 1, 2}, {"tp", 1, 2}}, {}));
  CHECK_ERROR(kMeshAxisReused, one_axis(kGrid, nest(split(8, {{"tp"}}), {{"tp"}})));
  CHECK_ERROR(
      kMeshAxisReused,
      one_axis(kGrid,
               layout::pad(concat({whole(2), scale(nest(split(4, {{"tp"}}), {{"tp"}}), 2)}))));
  CHECK(two({{"tp", 1, 2}}, {{"tp", 2, 2}}).is_sharded());
  CHECK(two({{"tp"}}, {{"dp"}}).is_sharded());
  const auto refused = error_of([&] { return two({{"tp"}}, {{"tp"}}); });
  REQUIRE(refused);
  CHECK(refused->message() ==
        "mesh axis 'tp' cuts axis 0 'embed' and axis 1 'batch' of one tensor");
}

TEST_CASE("L3: the advice to lay both over parts of the mesh axis gets past the error") {
  const auto laid = [](i64 n, const mesh::Over& rows, const mesh::Over& columns) {
    return Layout(tp(n), {64, 64}, {{split(64, rows), 1, {}}, {split(64, columns), 1, {}}});
  };
  const std::string such = "such as ";
  const std::string and_word = " and ";
  for (i64 n = 2; n <= 36; ++n) {
    CAPTURE(n);
    const auto refused = error_of([&] { return laid(n, kTp, kTp); });
    REQUIRE(refused);
    const std::string help = refused->help_lines().front();
    CHECK(help.find("another mesh axis, or keep it whole (null)") != std::string::npos);
    CHECK(laid(n, kTp, {}).is_sharded());
    bool is_prime = true;
    for (i64 divisor = 2; divisor < n; ++divisor) is_prime = is_prime && n % divisor != 0;
    const size_t parts = help.find(such);
    REQUIRE((parts == std::string::npos) == is_prime);
    if (is_prime) continue;
    const size_t between = help.find(and_word, parts);
    REQUIRE(between != std::string::npos);
    const mesh::AxisRef first =
        mesh::parse_axis_ref(help.substr(parts + such.size(), between - parts - such.size()));
    const mesh::AxisRef second = mesh::parse_axis_ref(help.substr(between + and_word.size()));
    CHECK(extent(tp(n), mesh::Over{first, second}) == n);
    CHECK(laid(n, {first}, {second}).is_sharded());
  }
}

TEST_CASE("L3: the axis of a name counts, too") {
  const auto named = [](const AxisExpr& expr) {
    return Layout(kGrid, {8}, {{split(8, {{"tp"}}), 1, {}}}, {{"layers", expr, 0}});
  };
  CHECK_ERROR(kMeshAxisReused, named(split(4, {{"tp"}})));
  CHECK_ERROR(kMeshAxisReused, named(split(4, {{"dp"}, {"dp"}})));
  CHECK_ERROR(kMeshAxisReused, named(nest(split(4, {{"dp"}}), {{"dp"}})));
  CHECK(named(split(4, {{"dp"}})).ranks() == std::vector<i64>{0, 1, 2, 3});
}

TEST_CASE("sections of one axis may be cut over the same mesh axis") {
  CHECK(held(one_axis(tp(2), concat({split(4, kTp), split(6, kTp)})), 0) ==
        Held{"[0, 2) [4, 7)", "[2, 4) [7, 10)"});
}

TEST_CASE("a tensor lives where the axis of its name holds its index") {
  const auto layer = [](i64 index) {
    return Layout(Mesh({{"pp", 4}}), {3}, {{whole(3), 1, {}}},
                  {{"layers", split(10, {{"pp"}}), index}});
  };
  CHECK(layer(0).ranks() == std::vector<i64>{0});
  CHECK(layer(2).ranks() == std::vector<i64>{0});
  CHECK(layer(3).ranks() == std::vector<i64>{1});
  CHECK(layer(9).ranks() == std::vector<i64>{3});
  CHECK(held(layer(9), 0) == Held{"not here", "not here", "not here", "[0, 3)"});
  CHECK(layer(9).is_sharded());
  CHECK_ERROR(kStrategy, layer(10));
  CHECK_ERROR(kStrategy, layer(-1));
}

TEST_CASE(
    "experts are dealt out by number: 128 over 8 puts 48 to 63 on device 3; 60 over 8 leaves none "
    "out") {
  const auto device_of = [](i64 experts, i64 expert) {
    const Layout one(Mesh({{"ep", 8}}), {2}, {{whole(2), 1, {}}},
                     {{"experts", split(experts, {{"ep"}}), expert}});
    return one.ranks();
  };
  CHECK(device_of(128, 47) == std::vector<i64>{2});
  CHECK(device_of(128, 48) == std::vector<i64>{3});
  CHECK(device_of(128, 63) == std::vector<i64>{3});
  CHECK(device_of(60, 31) == std::vector<i64>{3});
  CHECK(device_of(60, 32) == std::vector<i64>{4});
  CHECK(device_of(60, 59) == std::vector<i64>{7});
}

TEST_CASE("a cut inside a packed element is refused: FP4 pairs in bytes") {
  CHECK(held(one_axis(tp(4), scale(split(10, kTp), 64), 2), 0) ==
        Held{"[0, 96)", "[96, 192)", "[192, 256)", "[256, 320)"});
  const auto refused = error_of([] { return one_axis(tp(4), split(10, kTp), 2); });
  REQUIRE(refused);
  CHECK(refused->code() == ErrorCode::kBlockStraddle);
  CHECK(refused->message() == "the cut of axis 0 at index 3 falls inside a block of 2: 3 % 2 = 1");
}

TEST_CASE("a partial block that is not the device's last is refused at its end") {
  CHECK(held(one_axis(tp(2), owners(5, {{0, 1, 4}, {2, 3}}, kTp), 2), 0) ==
        Held{"[0, 1) [2, 3)", "[1, 2)"});
  const auto refused = error_of([] {
    return one_axis(tp(2), owners(5, {{4, 0, 1}, {2, 3}}, kTp), 2);
  });
  REQUIRE(refused);
  CHECK(refused->message() == "the cut of axis 0 at index 5 falls inside a block of 2: 5 % 2 = 1");
}

TEST_CASE("two axes over two mesh axes: local (8, 4, 16) of (8, 16, 32) on data=4, model=2") {
  const Mesh mesh({{"data", 4}, {"model", 2}});
  const Layout layout(
      mesh, {8, 16, 32},
      {{whole(8), 1, {}}, {split(16, {{"data"}}), 1, {}}, {split(32, {{"model"}}), 1, {}}});
  for (i64 rank = 0; rank < 8; ++rank) CHECK(local_shape(*layout.region(rank)) == Shape{8, 4, 16});
  CHECK(to_string(*layout.region(5)) == "[0, 8) x [8, 12) x [16, 32)");
}

TEST_CASE(
    "a batch of 32 over replica=2 and data=4 is 4 each; FSDP stores (7168, 1024) of (14336, "
    "4096)") {
  const Mesh both({{"replica", 2}, {"data", 4}});
  CHECK(extents(split(32, {{"replica"}, {"data"}}), both) == std::vector<i64>(8, 4));
  const Mesh fsdp({{"data", 4}, {"model", 2}});
  const Layout gate(fsdp, {14336, 4096},
                    {{split(14336, {{"model"}}), 1, {}}, {split(4096, {{"data"}}), 1, {}}});
  CHECK(local_shape(*gate.region(7)) == Shape{7168, 1024});
}

TEST_CASE("unused mesh axes are replicas, and a replicated tensor is on every device") {
  const Layout cut(kGrid, {8}, {{split(8, {{"tp"}}), 1, {}}});
  CHECK(cut.region(1) == cut.region(5));
  const Layout copied = Layout::replicated(kGrid, {8, 2});
  CHECK_FALSE(copied.is_sharded());
  CHECK(copied.region(7) == index::whole_region({8, 2}));
  CHECK(Layout::replicated(kGrid, {}).region(0)->empty());
}

TEST_CASE("the first empty shard is found, an empty tensor has none") {
  CHECK(one_axis(tp(4), split(2, kTp)).first_empty_shard() == 2);
  CHECK(one_axis(tp(4), split(4, kTp)).first_empty_shard() == std::nullopt);
  CHECK(one_axis(tp(4), split(0, kTp)).first_empty_shard() == std::nullopt);
  CHECK(one_axis(tp(4), split(3, kTp, layout::padded(4))).first_empty_shard() == 3);
}

TEST_CASE("10 rows from 4 devices to 3: 4 rows change places") {
  const Layout four = one_axis(tp(4), split(10, kTp));
  const Layout three = one_axis(tp(3), split(10, kTp));
  const index::HolderJoin join(four.holders(), three.holders());
  i64 rows_fetched = 0;
  join.for_each_box([&](index::HolderJoin::Box box) {
    const int from = join.source_of(box).holders.front();
    for (const auto& to : join.destinations_of(box)) {
      if (to.holders.front() != from) rows_fetched += box[0]->size;
    }
  });
  CHECK(rows_fetched == 4);
}
