// Numbers in names, such as layers and experts, put tensors on the devices that own them.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <map>
#include <string>
#include <vector>

#include "lib/mapping/resolve/resolve.h"
#include "tests/mapping/fixtures.h"

namespace shardtool::mapping {
namespace {

TEST_CASE("an index axis puts tensors on the devices that own their number") {
  const Mapping mapping = mapping_with(
      R"("experts": {"mesh": "ep", "size": 5})",
      R"({"match": "l.<layer>.e.<expert>", "strategy": "replicate", "index": {"expert": "experts"}})");
  std::vector<TensorSpec> tensors;
  for (int e = 0; e < 5; ++e) tensors.push_back(spec(fmt::format("l.3.e.{}", e), {4}));
  const auto ranks = [&](const Mapping& m, size_t expert) {
    return resolve(m, tensors, nullptr, over("ep=2,tp=2")).tensors[expert].layout->ranks();
  };
  CHECK(ranks(mapping, 2) == std::vector<i64>{0, 1});
  CHECK(ranks(mapping, 3) == std::vector<i64>{2, 3});
  const auto dealt = [&](const std::string& owners) {
    return mapping_with(
        R"("experts": {"mesh": "ep", "size": 5, "owners": )" + owners + "}",
        R"({"match": "l.<layer>.e.<expert>", "strategy": "replicate", "index": {"expert": "experts"}})");
  };
  CHECK(ranks(dealt("\"round_robin\""), 3) == std::vector<i64>{2, 3});
  CHECK(ranks(dealt("\"round_robin\""), 4) == std::vector<i64>{0, 1});
  CHECK(ranks(dealt("[[4, 0, 1], [2, 3, 0]]"), 0) == std::vector<i64>{0, 1, 2, 3});
}

TEST_CASE("tensors share a layout when their numbers have the same devices, and keep the numbers") {
  CHECK(rc::check("shared layouts", [] {
    const i64 layers = *rc::gen::inRange<i64>(2, 7), experts = *rc::gen::inRange<i64>(2, 9);
    const i64 pp = *rc::gen::inRange<i64>(1, layers + 1);
    const i64 ep = *rc::gen::inRange<i64>(1, experts + 1);
    const auto owners = *rc::gen::element<std::string>("", R"(, "owners": "round_robin")");
    const Mapping mapping = mapping_with(
        fmt::format(R"("layers": "pp", "experts": {{"mesh": "ep"{}}}, "x": "tp")", owners),
        R"({"match": "l.<layer>.e.<expert>", "dims": ["x"],
                 "index": {"layer": "layers", "expert": "experts"}})");
    std::vector<TensorSpec> tensors;
    for (i64 layer = 0; layer < layers; ++layer) {
      for (i64 expert = 0; expert < experts; ++expert)
        tensors.push_back(spec(fmt::format("l.{}.e.{}", layer, expert), {4}));
    }
    const Resolution result =
        resolve(mapping, tensors, nullptr, over(fmt::format("pp={},ep={},tp=2", pp, ep)));
    std::map<std::vector<i64>, const layout::Layout*> by_ranks;
    for (const ResolvedTensor& tensor : result.tensors) {
      const layout::Layout& shared = *tensor.layout;
      const auto own = index_axes(tensor);
      const auto number = static_cast<i64>(tensor.tensor);
      std::vector<i64> indices;
      for (const layout::IndexAxis& axis : own)
        indices.push_back(axis.logical == "layers" ? number / experts : number % experts);
      RC_ASSERT(tensor.numbers == indices);
      const layout::Layout alone(shared.mesh(), shared.shape(), shared.axes(), own);
      RC_ASSERT(alone.ranks() == shared.ranks());
      RC_ASSERT(by_ranks.try_emplace(shared.ranks(), &shared).first->second == &shared);
    }
    RC_ASSERT(static_cast<i64>(by_ranks.size()) == pp * ep);
  }));
}

TEST_CASE("resolutions over many meshes are those over each") {
  const Mapping mapping =
      mapping_with(R"("layers": "pp", "experts": "ep", "x": "tp", "unseen": "tp")",
                   R"({"match": "l.<layer>.e.<expert>", "dims": ["x"],
               "index": {"layer": "layers", "expert": "experts"}},
              {"match": "norm", "strategy": "replicate"})");
  std::vector<TensorSpec> tensors{spec("norm", {5})};
  for (int layer = 0; layer < 5; ++layer) {
    for (int expert = 0; expert < 4; ++expert)
      tensors.push_back(spec(fmt::format("l.{}.e.{}", layer, expert), {6}));
  }
  const Resolutions all(mapping, tensors, nullptr, {});
  for (const char* mesh :
       {"pp=1,ep=1,tp=1", "pp=2,ep=4,tp=3", "pp=5,ep=2,tp=1", "pp=1,ep=3,tp=2"}) {
    const Resolution one = resolve(mapping, tensors, nullptr, over(mesh));
    const Resolution other = all.over(*over(mesh).mesh);
    REQUIRE(one.tensors.size() == other.tensors.size());
    CHECK(one.warnings == other.warnings);
    CHECK(one.axis_sizes == other.axis_sizes);
    CHECK(one.uneven.size() == other.uneven.size());
    for (size_t i = 0; i < one.tensors.size(); ++i) {
      const layout::Layout& layout = *one.tensors[i].layout;
      CHECK(one.tensors[i].tensor == other.tensors[i].tensor);
      CHECK(layout.ranks() == other.tensors[i].layout->ranks());
      for (const i64 rank : layout.ranks())
        CHECK(layout.region(rank) == other.tensors[i].layout->region(rank));
      CHECK(why(one.tensors[i]) == why(other.tensors[i]));
    }
  }
  CHECK_ERROR(kEmptyShard, all.over(mesh::parse_mesh("pp=6,ep=1,tp=1")));
}

TEST_CASE("an index axis without a size has as many indices as the names say") {
  const Mapping mapping =
      mapping_with(R"("layers": "pp")",
                   R"({"match": "l.<n>", "strategy": "replicate", "index": {"n": "layers"}})");
  const std::vector<TensorSpec> tensors = {spec("l.0", {1}), spec("l.3", {1}), spec("l.10", {1})};
  const Resolution result = resolve(mapping, tensors, nullptr, over("pp=2"));
  CHECK(result.tensors[1].layout->ranks() == std::vector<i64>{0});
  CHECK(result.tensors[2].layout->ranks() == std::vector<i64>{1});
  CHECK(result.uneven.at(0).sizes == std::vector<i64>{6, 5});
}

TEST_CASE("numbers of layers cost memory for those that tensors have, whatever config.json says") {
  const std::vector<TensorSpec> tensors = {spec("l.0.w", {4}), spec("l.5.w", {4})};
  for (const std::string size : {"20000000000", "9223372036854775807"}) {
    const Resolution result = resolve(
        mapping_with(R"("l": {"mesh": "pp", "size": )" + size + "}",
                     R"({"match": "l.<n>.w", "strategy": "replicate", "index": {"n": "l"}})"),
        tensors, nullptr, over("pp=2"));
    CHECK(result.tensors[0].layout->ranks() == std::vector<i64>{0});
    CHECK(result.tensors[0].layout == result.tensors[1].layout);
  }
}

}  // namespace
}  // namespace shardtool::mapping
