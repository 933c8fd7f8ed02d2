#include "lib/mapping/mesh_choice.h"

#include <doctest/doctest.h>

#include "lib/mapping/resolve/resolve.h"
#include "tests/mapping/fixtures.h"

namespace shardtool::mapping {
namespace {

Mapping with_mesh(const std::string& mesh) {
  return mapping_of(R"({"version": 1, "mesh": )" + mesh + "}");
}

std::string chosen(const Mapping& mapping, const ResolveOptions& options) {
  return to_string(choose_mesh(mapping, options));
}

TEST_CASE("the mesh is that of the nearest document, and the command line's stands over it") {
  const Mapping mapping = with_mesh(R"([{"axis": "ep", "size": 2}, {"axis": "tp", "size": 4}])");
  CHECK(chosen(mapping, {}) == "ep=2,tp=4");
  CHECK(chosen(mapping, over("tp=3")) == "tp=3");
}

TEST_CASE("the help for a mesh that lacks an axis of the file works when it is followed") {
  const auto followed = [](const std::string& mesh, const std::string& axes,
                           const std::string& typed) {
    const Mapping mapping =
        mapping_of(R"({"version": 1, "mesh": )" + mesh + R"(, "axes": )" + axes + "}");
    const auto error = testing::error_of([&] { choose_mesh(mapping, over(typed)); });
    REQUIRE(error);
    const std::string flag = "--mesh ";
    const std::string help = error->help_lines().at(0);
    return chosen(mapping, over(help.substr(help.find(flag) + flag.size())));
  };
  const std::string two = R"([{"axis": "x", "size": 2}, {"axis": "y", "size": 3}])";
  const std::string cuts = R"({"r": {"mesh": "x"}, "q": {"mesh": "y"}})";
  CHECK(followed(two, cuts, "x=4") == "x=4,y=3");
  CHECK(followed(two, cuts, "z=4") == "x=2,y=3");
  CHECK(followed(R"([{"axis": "y", "size": 3}])", R"({"q": {"mesh": "y"}})", "z=4") == "y=4");
}

TEST_CASE("the size auto is given by the command line only") {
  const Mapping one = with_mesh(R"([{"axis": "dp", "size": "auto"}, {"axis": "tp", "size": 4}])");
  const Mapping two =
      with_mesh(R"([{"axis": "dp", "size": "auto"}, {"axis": "tp", "size": "auto"}])");
  for (const Mapping& mapping : {one, two}) {
    CHECK_ERROR(kMesh, chosen(mapping, {}));
    CHECK(chosen(mapping, over("dp=3,tp=2")) == "dp=3,tp=2");
  }
}

TEST_CASE("no mesh, one axis twice and too many devices are refused") {
  CHECK_ERROR(kMesh, chosen(mapping_of(R"({"version": 1})"), {}));
  CHECK_ERROR(kMesh,
              chosen(with_mesh(R"([{"axis": "tp", "size": 2}, {"axis": "tp", "size": 2}])"), {}));
  CHECK_ERROR(kMesh, chosen(with_mesh(R"([{"axis": "tp", "size": 2147483648}])"), {}));
}

TEST_CASE("an error about the order of devices points at it, and one about the axes at those") {
  const auto place_of = [](const std::string& fields) {
    const auto error = testing::error_of(
        [&] { choose_mesh(mapping_of(R"({"version": 1, )" + fields + "}"), {}); });
    REQUIRE(error);
    REQUIRE(error->place());
    return error->place()->pointer;
  };
  const std::string mesh = R"("mesh": [{"axis": "tp", "size": 2}])";
  CHECK(place_of(mesh + R"(, "device_order": [0])") == "/device_order");
  CHECK(place_of(mesh + R"(, "device_order": [0, 2])") == "/device_order");
  CHECK(place_of(mesh + R"(, "device_order": [1, 1])") == "/device_order");
  CHECK(place_of(R"("mesh": [{"axis": "tp", "size": 2}, {"axis": "tp", "size": 2}],
                    "device_order": [0, 1, 2, 3])") == "/mesh/0");
}

}  // namespace
}  // namespace shardtool::mapping
