#include "lib/mapping/match/companions.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/mapping/fixtures.h"

namespace shardtool::mapping {
namespace {

Mapping with(const std::string& companion, const std::string& more = "") {
  return mapping_of(fmt::format(
      R"({{"version": 1, "axes": {{"x": "tp", "h": {{"mesh": "tp", "size": 8}}}}, "unused_rule": "ignore",
    "rules": [{{"match": "*.r.weight", "dims": ["x", null]}}, {{"match": "*.c.weight", "dims": [null, "x"]}},
              {{"match": "*.h.weight", "dims": ["h*96", null]}}],
    "companions": [{}]{}}})",
      companion, more));
}

const std::string kBlock =
    R"({"of": "**.weight", "is": "**.scale", "kind": "block_scale", "block": [128, 128]})";

Resolution both(const Mapping& mapping, const std::string& module, const Shape& weight,
                const Shape& scale, std::string_view mesh, const ModelConfig* config = nullptr) {
  const std::vector<TensorSpec> tensors = {spec(module + ".scale", scale, Dtype::kF32),
                                           spec(module + ".weight", weight)};
  return resolve(mapping, tensors, config, over(mesh));
}

TEST_CASE("the scales of blocks follow the cut of the weight, block by block") {
  const auto rows = both(with(kBlock), "a.r", {14336, 4096}, {112, 32}, "tp=4");
  CHECK(held(*rows.tensors[0].layout, 0) == Held{"[0, 28)", "[28, 56)", "[56, 84)", "[84, 112)"});
  CHECK(rows.tensors[0].by->rule == "companions/0");
  CHECK(rows.tensors[0].by->strategy == "block_scale");
  const auto columns = both(with(kBlock), "a.c", {14336, 4096}, {112, 32}, "tp=4");
  CHECK(held(*columns.tensors[0].layout, 1)[3] == "[24, 32)");
  CHECK(held(*columns.tensors[0].layout, 0)[3] == "[0, 112)");
}

TEST_CASE("a companion's sections have the names of those of the weight") {
  const auto sections = [](const std::string& cut, const std::string& more) {
    const Mapping mapping = mapping_of(fmt::format(
        R"({{"version": 1, "axes": {{"x": "tp"}}, "rules": [{{"match": "*.weight", {}{}}}],
             "companions": [{}]}})",
        cut, more, kBlock));
    const auto resolution = both(mapping, "a", {768, 128}, {6, 1}, "tp=3");
    CHECK(resolution.tensors[0].by->sections == resolution.tensors[1].by->sections);
    return resolution.tensors[0].by->sections;
  };
  using Names = std::vector<std::string>;
  const std::string dims = R"("dims": ["x + x", null])";
  CHECK(sections(dims, R"(, "sections": ["a", "b"])") == Names{"a", "b"});
  CHECK(sections(dims, "").empty());
  CHECK(sections(R"("strategy": {"type": "gate_up", "axis": 0})", "") == Names{"gate", "up"});
}

TEST_CASE("a cut inside a block is refused, also where the counts of blocks divide") {
  const auto e = error_of([] { return both(with(kBlock), "a.h", {768, 128}, {6, 1}, "tp=3"); });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kBlockStraddle);
  CHECK(e->tensor_name() == "a.h.scale");
  CHECK(e->place()->pointer == "/companions/0");
  CHECK_ERROR(kBlockStraddle, both(with(kBlock), "a.r", {1100, 128}, {9, 1}, "tp=3"));
}

TEST_CASE("the block can come from the config, a last partial block counts") {
  const Mapping mapping = with(
      R"({"of": "**.weight", "is": "**.scale", "kind": "block_scale", "block": "config.q.block"})");
  const ModelConfig config = config_of(R"({"q": {"block": [64, 128]}})");
  const auto result = both(mapping, "a.r", {160, 200}, {3, 2}, "tp=1", &config);
  CHECK(held(*result.tensors[0].layout, 0) == Held{"[0, 3)"});
  CHECK_ERROR(kConfig, both(mapping, "a.r", {160, 200}, {3, 2}, "tp=1"));
  const ModelConfig without = config_of(R"({"q": {"block": 64}})");
  CHECK_ERROR(kSizeExpression, both(mapping, "a.r", {160, 200}, {3, 2}, "tp=1", &without));
}

TEST_CASE("values per row, per column, per tensor and per element follow what they belong to") {
  const auto kind = [](const std::string& name) {
    return with(fmt::format(R"({{"of": "**.weight", "is": "**.scale", "kind": "{}"}})", name));
  };
  CHECK(held(*both(kind("per_row"), "a.r", {8, 4}, {8, 1}, "tp=2").tensors[0].layout, 0)[1] ==
        "[4, 8)");
  CHECK(held(*both(kind("per_row"), "a.c", {8, 4}, {8}, "tp=2").tensors[0].layout, 0)[1] ==
        "[0, 8)");
  CHECK(held(*both(kind("per_column"), "a.c", {8, 4}, {1, 4}, "tp=2").tensors[0].layout, 1)[1] ==
        "[2, 4)");
  CHECK_FALSE(both(kind("per_tensor"), "a.r", {8, 4}, {}, "tp=2").tensors[0].layout->is_sharded());
  CHECK(held(*both(kind("same_dims"), "a.r", {8, 4}, {8, 4}, "tp=2").tensors[0].layout, 0)[1] ==
        "[4, 8)");
  CHECK_ERROR(kShapeMismatch, both(kind("per_row"), "a.r", {8, 4}, {7}, "tp=2"));
}

TEST_CASE("a companion whose leader is not there, or dropped, needs a rule of its own") {
  const std::vector<TensorSpec> orphan = {spec("a.r.scale", {8})};
  CHECK_ERROR(kNoRule, resolve(with(kBlock), orphan, nullptr, over("tp=2")));
  CHECK_ERROR(kNoRule,
              both(with(kBlock, R"(, "drop": ["**.weight"])"), "a.r", {8, 4}, {8, 4}, "tp=2"));
}

TEST_CASE("a companion is not cut by a rule that would match it, too") {
  const Mapping mapping =
      with(kBlock, R"(, "overrides": [{"match": "**.scale", "strategy": "replicate"}])");
  CHECK(both(mapping, "a.r", {256, 128}, {2, 1}, "tp=2").tensors[0].by->rule == "companions/0");
}

TEST_CASE("a companion of a companion is refused") {
  const Mapping mapping =
      with(kBlock + R"(, {"of": "**.scale", "is": "**.zero", "kind": "same_dims"})");
  const std::vector<TensorSpec> tensors = {spec("a.r.weight", {256, 128}),
                                           spec("a.r.scale", {2, 1}), spec("a.r.zero", {2, 1})};
  CHECK_ERROR(kMappingSchema, resolve(mapping, tensors, nullptr, over("tp=2")));
}

}  // namespace
}  // namespace shardtool::mapping
