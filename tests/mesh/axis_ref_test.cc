#include "lib/mesh/axis_ref.h"

#include <doctest/doctest.h>

#include <map>

#include "tests/support/generators.h"
#include "tests/support/throws.h"

using namespace shardtool;
using mesh::AxisRef;
using mesh::Mesh;
using mesh::Over;

namespace {

const Mesh kTp8({{"tp", 8}});

std::vector<i64> indices(const Mesh& mesh, const Over& over) {
  std::vector<i64> all;
  for (i64 rank = 0; rank < mesh.size(); ++rank) all.push_back(index_along(mesh, over, rank));
  return all;
}

AxisRef any_part(const mesh::MeshAxis& axis) {
  std::vector<AxisRef> parts{{axis.name, 1, 0}};
  for (i64 pre = 1; pre <= axis.size; ++pre) {
    for (i64 size = 1; pre * size <= axis.size; ++size) {
      if (axis.size % (pre * size) == 0) parts.push_back({axis.name, pre, size});
    }
  }
  return *rc::gen::elementOf(parts);
}

}  // namespace

TEST_CASE("tp:(1)4 on tp=8 gives ranks 0 and 1 index 0") {
  CHECK(indices(kTp8, {{"tp", 1, 4}}) == std::vector<i64>{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(indices(kTp8, {{"tp", 4, 2}}) == std::vector<i64>{0, 1, 0, 1, 0, 1, 0, 1});
  CHECK(indices(kTp8, {{"tp", 2, 2}}) == std::vector<i64>{0, 0, 1, 1, 0, 0, 1, 1});
}

TEST_CASE("several axes are major to minor in the order given, not in the order of the mesh") {
  const Mesh mesh({{"dp", 2}, {"tp", 2}});
  CHECK(indices(mesh, {{"dp"}, {"tp"}}) == std::vector<i64>{0, 1, 2, 3});
  CHECK(indices(mesh, {{"tp"}, {"dp"}}) == std::vector<i64>{0, 2, 1, 3});
  CHECK(index_along(Mesh({{"x", 2}, {"y", 3}}), {{"x"}, {"y"}}, 4) == 4);
}

TEST_CASE("an axis cut into a chain of parts is the whole axis again") {
  CHECK(rc::check("the directions of a mesh number its devices", [] {
    const Mesh mesh = *gen::mesh();
    const Over over = *gen::directions(mesh);
    RC_ASSERT(extent(mesh, over) == mesh.size());
    auto all = indices(mesh, over);
    std::sort(all.begin(), all.end());
    for (i64 rank = 0; rank < mesh.size(); ++rank)
      RC_ASSERT(all[static_cast<size_t>(rank)] == rank);
  }));
}

TEST_CASE("parts that do not overlap are independent: every pair of indices occurs equally often") {
  CHECK(rc::check("overlaps", [] {
    const Mesh mesh({{"tp", *rc::gen::element<i64>(4, 6, 8, 12, 24)}});
    const AxisRef a = any_part(mesh.axes()[0]);
    const AxisRef b = any_part(mesh.axes()[0]);
    RC_ASSERT(overlaps(mesh, a, b) == overlaps(mesh, b, a));
    RC_CLASSIFY(!overlaps(mesh, a, b), "disjoint");
    if (overlaps(mesh, a, b)) return;
    std::map<std::pair<i64, i64>, i64> times;
    for (i64 rank = 0; rank < mesh.size(); ++rank) {
      ++times[{index_along(mesh, a, rank), index_along(mesh, b, rank)}];
    }
    RC_ASSERT(static_cast<i64>(times.size()) == extent(mesh, a) * extent(mesh, b));
    for (const auto& [pair, count] : times) RC_ASSERT(count == times.begin()->second);
  }));
}

TEST_CASE("parts overlap when they share a direction, never across axes") {
  const Mesh mesh({{"tp", 8}, {"ep", 8}});
  CHECK(overlaps(mesh, {"tp"}, {"tp"}));
  CHECK(overlaps(mesh, {"tp"}, {"tp", 1, 2}));
  CHECK(overlaps(mesh, {"tp", 1, 4}, {"tp", 2, 2}));
  CHECK_FALSE(overlaps(mesh, {"tp", 1, 4}, {"tp", 4, 2}));
  CHECK_FALSE(overlaps(mesh, {"tp"}, {"ep"}));
}

TEST_CASE("parts that share no device step but do not nest are no independent directions") {
  // On 12 devices tp:(1)4 is rank / 3 and tp:(6)2 is rank % 2: index (0, 0) has two devices, (0, 1)
  // one.
  CHECK(overlaps(Mesh({{"tp", 12}}), {"tp", 1, 4}, {"tp", 6, 2}));
}

TEST_CASE("a part that does not divide its axis is refused") {
  CHECK_ERROR(kMesh, extent(kTp8, AxisRef{"tp", 1, 3}));
  CHECK_ERROR(kMesh, extent(kTp8, AxisRef{"tp", 4, 4}));
  CHECK_ERROR(kMesh, extent(kTp8, AxisRef{"tp", i64{1} << 62, 4}));
  CHECK_ERROR(kUnknownName, extent(kTp8, AxisRef{"pt", 1, 0}));
  CHECK_ERROR(kMesh, index_along(kTp8, AxisRef{"tp", 1, 16}, 3));
}

TEST_CASE("leading keeps the major indices and leaves the rest as replicas") {
  CHECK(leading(kTp8, {{"tp"}}, 4) == Over{{"tp", 1, 4}});
  CHECK(leading(kTp8, {{"tp"}}, 8) == Over{{"tp"}});
  CHECK(leading(kTp8, {{"tp"}}, 1) == Over{});
  CHECK(leading(kTp8, {{"tp"}}, 3) == std::nullopt);
  CHECK(leading(kTp8, {{"tp"}}, 16) == std::nullopt);
  CHECK(leading(kTp8, {{"tp", 2, 4}}, 2) == Over{{"tp", 2, 2}});
  CHECK(leading(Mesh({{"ep", 2}, {"tp", 4}}), {{"ep"}, {"tp"}}, 4) == Over{{"ep"}, {"tp", 1, 2}});
  CHECK(leading(Mesh({{"ep", 2}, {"tp", 3}}), {{"ep"}, {"tp"}}, 3) == std::nullopt);
}

TEST_CASE("the leading part of an index is that index without its minor digits") {
  CHECK(rc::check("index_along(leading(over, k)) = index_along(over) / (N / k)", [] {
    const Mesh mesh = *gen::mesh();
    const Over over = *gen::directions(mesh);
    const i64 parts = *gen::between(1, 24);
    const auto kept = leading(mesh, over, parts);
    if (!kept) return;
    RC_ASSERT(extent(mesh, *kept) == parts);
    for (i64 rank = 0; rank < mesh.size(); ++rank) {
      RC_ASSERT(index_along(mesh, *kept, rank) ==
                index_along(mesh, over, rank) / (mesh.size() / parts));
    }
  }));
}

TEST_CASE("a reference is read as it is printed") {
  CHECK(rc::check("parse_axis_ref(to_string(r)) = r", [] {
    const AxisRef ref = any_part({"tp", *gen::between(1, 24)});
    RC_ASSERT(mesh::parse_axis_ref(to_string(ref)) == ref);
  }));
  CHECK(to_string(Over{{"ep"}, {"tp", 1, 4}}) == "ep*tp:(1)4");
  CHECK(to_string(Over{}) == "nothing");
}

TEST_CASE("malformed references are refused") {
  for (const char* text : {":(1)4", "tp:(1)", "tp:()4", "tp:(0)4", "tp:(1)0", "tp:(1", "tp:(1)4 ",
                           "tp:(-1)4", "tp:(1)4)", "tp:(99999999999999999999)1", ""}) {
    CAPTURE(text);
    CHECK_ERROR(kMappingSchema, mesh::parse_axis_ref(text));
  }
}
