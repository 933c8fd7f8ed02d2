// The manifest records every option that decides a layout, so that later commands see the layout
// that is on disk.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "lib/api/explain.h"
#include "lib/api/plan.h"
#include "lib/api/transform.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::TempFolder;

constexpr const char* kTwoAxisMaps = R"({
  "version": 1, "extends": ["preset:llama"], "mesh": [{"axis": "tp", "size": 4}],
  "layouts": {"param": {"embed": "tp", "mlp": null, "heads": null, "kv_heads": null, "vocab": null}}
})";
constexpr const char* kMatrix = "model.layers.0.mlp.up_proj.weight";

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The sample over tp=4, cut by the axes "param" of its mapping.
struct ParamShards {
  TempFolder folder;
  std::string parts = folder / "parts";

  ParamShards() {
    folder.write("mapping.json", kTwoAxisMaps);
    SplitOptions options;
    options.source = SHARDTOOL_SOURCE_DIR "/samples/tiny-llama";
    options.mapping.path = folder / "mapping.json";
    options.mapping.layout = "param";
    options.write.output = parts;
    split(options);
  }
  std::string resharded(const std::string& mesh) const {
    ReshardOptions options;
    options.sources = {parts};
    options.to.mesh = mesh::parse_mesh(mesh);
    options.write.output = folder / "resharded";
    reshard(options);
    return options.write.output;
  }
  std::string cut_of_matrix(const std::string& source) const {
    ExplainOptions options;
    options.source = source;
    options.tensor = kMatrix;
    return explain(options).why;
  }
  /// Removes the record of the axes, as older versions wrote the manifest.
  void forget_axes() const {
    std::string text = text_of(parts + "/manifest.json");
    const std::string record = "\"axes\":\"param\",\n";
    const size_t at = text.find(record);
    REQUIRE(at != text.npos);
    std::ofstream(parts + "/manifest.json") << text.erase(at, record.size());
  }
};

TEST_CASE("a reshard to the same mesh keeps the axes of the split") {
  const ParamShards shards;
  const std::string again = shards.resharded("tp=4");
  for (const char* file :
       {"manifest.json", "model-rank-0-part-0.safetensors", "model-rank-3-part-0.safetensors"}) {
    CHECK(text_of(shards.parts + "/" + file) == text_of(again + "/" + file));
  }
}

TEST_CASE("a reshard to another mesh cuts by the axes of the split, and records them") {
  const ParamShards shards;
  const std::string other = shards.resharded("tp=2");
  CHECK(shards.cut_of_matrix(other).find("Split(64, tp)") != std::string::npos);
  CHECK(text_of(other + "/manifest.json").find("\"axes\":\"param\"") != std::string::npos);
}

TEST_CASE("explain and plan see the slices on disk") {
  const ParamShards shards;
  CHECK(shards.cut_of_matrix(shards.parts).find("cuts axis 1 'embed'") != std::string::npos);
  PlanOptions options;
  options.sources = {shards.parts};
  options.to_mesh = mesh::parse_mesh("tp=4");
  const PlanReport report = make_plan(options);
  REQUIRE(report.reshard);
  CHECK(report.reshard->bytes_moved == 0);
}

TEST_CASE("a mapping of the manifest that contradicts its slices is refused") {
  const ParamShards shards;
  shards.forget_axes();
  CHECK_ERROR(kManifestInvalid, shards.cut_of_matrix(shards.parts));
  CHECK_ERROR(kManifestInvalid, shards.resharded("tp=4"));
}

TEST_CASE("shards without elements need no second permission") {
  const TempFolder folder;
  folder.write("mapping.json", R"({"version": 1, "mesh": [{"axis": "tp", "size": 20}],
    "unknown": "replicate", "rules": [{"match": "**.k_proj.weight", "strategy": "rowwise"}]})");
  SplitOptions options;
  options.source = SHARDTOOL_SOURCE_DIR "/samples/tiny-llama";
  options.mapping.path = folder / "mapping.json";
  options.write.output = folder / "parts";
  CHECK_ERROR(kEmptyShard, split(options));
  options.mapping.allow_empty_shards = true;
  split(options);
  ReshardOptions again;
  again.sources = {folder / "parts"};
  again.to.mesh = mesh::parse_mesh("tp=20");
  again.write.output = folder / "again";
  reshard(again);
  CHECK(text_of(folder / "parts/manifest.json") == text_of(folder / "again/manifest.json"));
}

}  // namespace
}  // namespace shardtool::api
