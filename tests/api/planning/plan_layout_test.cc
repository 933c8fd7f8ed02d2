// Plans of the files of an engine, and of mappings that are compared.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "lib/api/plan.h"
#include "lib/api/transform.h"
#include "tests/api/planning/stored_model.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

/// A Llama with tied embeddings whose file has the head, too.
mapping::TinyModel tied_llama() {
  mapping::TinyModel model = mapping::tiny_llama();
  nlohmann::json config = nlohmann::json::parse(model.config);
  config["tie_word_embeddings"] = true;
  model.config = config.dump();
  return model;
}

PlanReport plan_of(const std::string& path, const std::string& mesh, const std::string& layout) {
  PlanOptions options;
  options.sources = {path};
  options.mapping.mesh = mesh::parse_mesh(mesh);
  options.mapping.engine_layout = layout;
  options.draws = true;
  return make_plan(options);
}

i64 planned_bytes(const std::string& path, const std::string& mesh, const std::string& layout) {
  i64 bytes = 0;
  for (const PlanDevice& device : plan_of(path, mesh, layout).memory.devices)
    bytes += device.weights;
  return bytes;
}

i64 written_bytes(const std::string& path, const std::string& mesh, const std::string& layout) {
  SplitOptions options;
  options.source = path;
  options.mapping.mesh = mesh::parse_mesh(mesh);
  options.write.layout = layout;
  options.write.output = path + "/../none";
  options.write.dry_run = true;
  return split(options).plan.bytes_out;
}

TEST_CASE("a plan of an engine's files has the bytes that split writes, without a tied head") {
  const StoredModel model(tied_llama());
  for (const std::string layout : {"plain", "vllm", "sglang"}) {
    for (const std::string mesh : {"tp=1", "tp=2", "pp=2", "pp=2,tp=2"}) {
      if (layout == "sglang" && mesh.starts_with("pp")) continue;
      CAPTURE(layout);
      CAPTURE(mesh);
      CHECK(planned_bytes(model.path(), mesh, layout) == written_bytes(model.path(), mesh, layout));
    }
  }
  CHECK(planned_bytes(model.path(), "tp=2", "vllm") < planned_bytes(model.path(), "tp=2", "plain"));
}

/// Bytes of the tensors in a rank's file, from its header.
i64 stored_bytes(const std::string& output, i64 rank) {
  i64 bytes = 0;
  for (const auto& [name, tensor] :
       test::read_tensors(output, fmt::format("model-rank-{}-part-0", rank)))
    bytes += std::ssize(tensor.bytes);
  return bytes;
}

TEST_CASE("a plan and a split count the constants that an engine's files have beside the model") {
  const StoredModel model(mapping::tiny_llama());
  for (const std::string layout : {"plain", "vllm", "sglang"}) {
    CAPTURE(layout);
    const test::TempFolder folder;
    SplitOptions options;
    options.source = model.path();
    options.mapping.mesh = mesh::parse_mesh("tp=2");
    options.write.layout = layout;
    options.write.output = folder / "parts";
    const TransformPlan split_plan = split(options).plan;
    const MemoryReport memory = plan_of(model.path(), "tp=2", layout).memory;
    i64 written = 0, replicated = 0;
    for (const PlanDevice& device : memory.devices) {
      const i64 stored = stored_bytes(options.write.output, device.rank);
      CHECK(device.weights == stored);
      CHECK(std::accumulate(device.by_class.begin(), device.by_class.end(), i64{0}) == stored);
      written += stored;
      replicated += device.replicated;
    }
    CHECK(split_plan.bytes_out == written);
    CHECK(split_plan.replicated_bytes == replicated);
    i64 drawn = 0;
    for (const LayerWeights& layer : memory.layers)
      drawn = std::accumulate(layer.by_class.begin(), layer.by_class.end(), drawn);
    CHECK(drawn == memory.devices[memory.fullest].weights);
  }
}

TEST_CASE("a mapping that is compared and impossible is a row with the reason") {
  const StoredModel model(mapping::tiny_llama());
  const test::TempFolder folder;
  folder.write("other.json",
               R"({"version": 1, "extends": ["preset:llama"], "axes": {"mlp": "model"}})");
  PlanOptions options;
  options.sources = {model.path()};
  options.mapping.mesh = mesh::parse_mesh("tp=2");
  options.compare = {folder.path() + "/other.json", "llama"};
  const MemoryReport memory = make_plan(options).memory;
  REQUIRE(memory.compare.size() == 2);
  CHECK(memory.compare[0].name == options.compare[0]);
  CHECK(memory.compare[0].devices == 2);
  CHECK(memory.compare[0].refusal == "the mesh tp=2 has no axis 'model'");
  CHECK(memory.compare[1].refusal.empty());
  CHECK(memory.compare[1].total == memory.devices[memory.fullest].total);
  options.compare = {"no-such-preset"};
  CHECK_ERROR(kUsage, make_plan(options));
}

TEST_CASE("a plan for more groups of experts than experts is refused, as is the split") {
  const StoredModel model(mapping::tiny_mixtral({.layers = 1}, 4));
  PlanOptions options;
  options.sources = {model.path()};
  options.mapping.mesh = mesh::parse_mesh("ep=4");
  CHECK(make_plan(options).memory.devices.size() == 4);
  options.mapping.mesh = mesh::parse_mesh("ep=5");
  CHECK_ERROR(kEmptyShard, make_plan(options));
}

}  // namespace
}  // namespace shardtool::api
