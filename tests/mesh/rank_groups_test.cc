#include "lib/mesh/rank_groups.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/generators.h"

using namespace shardtool;

TEST_CASE("a group has the ranks that differ on its axes only") {
  CHECK(rc::check("against coordinates", [] {
    const mesh::Mesh mesh = *gen::mesh();
    std::vector<std::string> along;
    for (const mesh::MeshAxis& axis : mesh.axes()) {
      if (*rc::gen::arbitrary<bool>()) along.push_back(axis.name);
    }
    std::vector<i64> ranks;
    for (i64 rank = 0; rank < mesh.size(); ++rank) {
      if (*rc::gen::arbitrary<bool>()) ranks.push_back(rank);
    }
    const mesh::RankGroups groups(mesh, ranks, along);
    for (i64 rank = 0; rank < mesh.size(); ++rank) {
      std::vector<i64> expected;
      for (const i64 other : ranks) {
        const bool is_member = std::ranges::all_of(mesh.axes(), [&](const mesh::MeshAxis& axis) {
          return mesh.index_on(axis.name, rank) == mesh.index_on(axis.name, other) ||
                 std::ranges::find(along, axis.name) != along.end();
        });
        if (is_member) expected.push_back(other);
      }
      RC_ASSERT(groups.of(rank) == expected);
    }
  }));
}
