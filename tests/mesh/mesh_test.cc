#include "lib/mesh/mesh.h"

#include <doctest/doctest.h>

#include "tests/support/generators.h"
#include "tests/support/throws.h"

using namespace shardtool;
using mesh::Coordinate;
using mesh::Mesh;

TEST_CASE("cells are row-major: rank and coordinate are inverses") {
  CHECK(rc::check("rank(coordinate(r)) = r, index_on is one of its digits", [] {
    const Mesh mesh = *gen::mesh();
    std::vector<i64> sizes;
    for (const auto& axis : mesh.axes()) sizes.push_back(axis.size);
    const auto coordinates = reference::tuples(sizes);
    RC_ASSERT(mesh.size() == static_cast<i64>(coordinates.size()));
    const auto order = mesh.device_order();
    for (i64 cell = 0; cell < mesh.size(); ++cell) {
      const Coordinate& expected = coordinates[static_cast<size_t>(cell)];
      const i64 rank = order.empty() ? cell : order[static_cast<size_t>(cell)];
      RC_ASSERT(mesh.coordinate(rank) == expected);
      RC_ASSERT(mesh.rank(expected) == rank);
      for (size_t a = 0; a < sizes.size(); ++a) {
        RC_ASSERT(mesh.index_on(mesh.axes()[a].name, rank) == expected[a]);
      }
    }
  }));
}

TEST_CASE("a mesh may list the ranks of its cells") {
  const Mesh mesh({{"dp", 2}, {"tp", 2}}, {0, 2, 1, 3});
  CHECK(mesh.coordinate(2) == Coordinate{0, 1});
  CHECK(mesh.rank({1, 0}) == 1);
  CHECK(to_string(mesh) == "dp=2,tp=2:0,2,1,3");
  CHECK(Mesh({{"tp", 2}}, {0, 1}) == Mesh({{"tp", 2}}));
  CHECK(Mesh({{"tp", 2}}, {1, 0}) != Mesh({{"tp", 2}}));
}

TEST_CASE("M4: listed ranks that are no permutation are refused with kMesh") {
  const std::vector<i64> refused[] = {{0}, {0, 1, 2}, {0, 0}, {1, 2}, {-1, 0}};
  for (const auto& order : refused) {
    CAPTURE(order.size());
    CHECK_ERROR(kMesh, Mesh({{"tp", 2}}, order));
  }
}

TEST_CASE("a 2 x 3 mesh puts device 4 at (1, 1)") {
  const Mesh mesh({{"x", 2}, {"y", 3}});
  CHECK(mesh.size() == 6);
  CHECK(mesh.coordinate(4) == Coordinate{1, 1});
}

TEST_CASE("groups along an axis are the devices that agree on all others") {
  const Mesh mesh({{"dp", 2}, {"tp", 4}});
  const auto group = [&](std::string_view fixed, i64 index) {
    std::vector<i64> ranks;
    for (i64 rank = 0; rank < mesh.size(); ++rank) {
      if (mesh.index_on(fixed, rank) == index) ranks.push_back(rank);
    }
    return ranks;
  };
  CHECK(group("dp", 0) == std::vector<i64>{0, 1, 2, 3});
  CHECK(group("dp", 1) == std::vector<i64>{4, 5, 6, 7});
  CHECK(group("tp", 0) == std::vector<i64>{0, 4});
  CHECK(group("tp", 3) == std::vector<i64>{3, 7});
}

TEST_CASE("a mesh without axes is one device") {
  CHECK(Mesh().size() == 1);
  CHECK(Mesh().coordinate(0).empty());
  CHECK(to_string(Mesh()) == "one device");
}

TEST_CASE("M1 to M3 are refused with kMesh") {
  CHECK_ERROR(kMesh, Mesh({{"tp", 2}, {"tp", 2}}));
  CHECK_ERROR(kMesh, Mesh({{"", 2}}));
  CHECK_ERROR(kMesh, Mesh({{"tp", 0}}));
  CHECK_ERROR(kMesh, Mesh({{"tp", -4}}));
  CHECK_ERROR(kMesh, Mesh({{"a", 65536}, {"b", 65536}}));
  CHECK_ERROR(kMesh, Mesh({{"a", i64{1} << 62}, {"b", i64{1} << 62}}));
  CHECK_ERROR(kMesh, Mesh({{"a", mesh::kMaxDevices + 1}}));
  CHECK(Mesh({{"a", mesh::kMaxDevices / 4}, {"b", 4}}).size() == mesh::kMaxDevices);
}

TEST_CASE("an unknown axis is named with its near misses") {
  const Mesh mesh({{"data", 2}, {"model", 4}});
  CHECK(mesh.has_axis("model"));
  CHECK_FALSE(mesh.has_axis("modle"));
  const auto thrown = testing::error_of([&] { return mesh.axis("modle"); });
  REQUIRE(thrown);
  CHECK(thrown->code() == ErrorCode::kUnknownName);
  CHECK(thrown->help_lines() == std::vector<std::string>{"did you mean 'model'?"});
}

TEST_CASE("a mesh is read as it is printed") {
  CHECK(rc::check("parse_mesh(to_string(m)) = m", [] {
    const Mesh mesh = *gen::mesh();
    RC_PRE(!mesh.axes().empty());
    RC_ASSERT(mesh::parse_mesh(to_string(mesh)) == mesh);
  }));
  CHECK(to_string(mesh::parse_mesh("ep=2,tp=4")) == "ep=2,tp=4");
}

TEST_CASE("malformed meshes are refused") {
  for (const char* text : {"", "tp", "tp=", "=4", "tp=0", "tp=-1", "tp=4x", "tp=+4", "tp= 4",
                           "tp=4,", ",tp=4", "tp=4,,ep=2", "tp=99999999999999999999", ":0",
                           "tp=2:", "tp=2:0,", "tp=2:0,x", "tp=2:0:1"}) {
    CAPTURE(text);
    CHECK_ERROR(kUsage, mesh::parse_mesh(text));
  }
  CHECK_ERROR(kMesh, mesh::parse_mesh("tp=4,tp=2"));
}
