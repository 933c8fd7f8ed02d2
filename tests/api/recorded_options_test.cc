// The manifest records every option that decides a layout, so that later commands see the layout
// that is on disk.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidcheck.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lib/api/explain.h"
#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/plan.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/api/transform.h"
#include "tests/api/planning/stored_model.h"
#include "tests/mapping/models.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using nlohmann::json;
using test::folder_content;
using test::TempFolder;

const std::vector<std::string> kAxes = {"x", "y", "z"};

/// Gives every mesh axis to one logical axis or to none, so that a tensor may have all of them.
json random_axis_map() {
  json map = {{"x", json::array()}, {"y", json::array()}, {"z", json::array()}};
  for (const char* mesh_axis : {"a", "b"}) {
    const i64 chosen = *gen::between(0, std::ssize(kAxes));
    if (chosen < std::ssize(kAxes)) map[kAxes[static_cast<size_t>(chosen)]].push_back(mesh_axis);
  }
  for (auto& over : map) {
    if (over.empty()) over = nullptr;
  }
  return map;
}

std::string random_mesh() {
  const i64 a = *gen::between(1, 3);
  const i64 b = *gen::between(1, 3);
  return fmt::format("a={},b={}:{}", a, b, fmt::join(*gen::permutation(a * b), ","));
}

std::string random_uneven() {
  return *rc::gen::element<std::string>("balanced", "chunk", "pad");
}

/// A random checkpoint with a mapping of two axis maps.
struct TwoMaps {
  TempFolder folder;
  test::Tensors tensors;
  SplitOptions options;

  TwoMaps() {
    json mapping = {{"version", 1}, {"axes", random_axis_map()}, {"rules", json::array()}};
    for (auto& axis : mapping["axes"]) axis = {{"mesh", axis}, {"uneven", random_uneven()}};
    mapping["mesh"] = {{{"axis", "a"}, {"size", 2}}, {{"axis", "b"}, {"size", 2}}};
    mapping["layouts"]["alt"] = random_axis_map();
    for (i64 t = *gen::between(1, 3); t > 0; --t) add_tensor(fmt::format("w{}", t), mapping);
    test::write_checkpoint(folder / "whole", tensors);
    options.source = folder / "whole";
    options.mapping.path = folder.write("mapping.json", mapping.dump());
    options.mapping.mesh = mesh::parse_mesh(random_mesh());
    options.mapping.layout = *rc::gen::element<std::string>("", "alt");
    options.mapping.allow_empty_shards = true;
    if (options.mapping.layout.empty() && *rc::gen::arbitrary<bool>())
      options.mapping.axis_mapping = folder.write("axes.json", random_axis_map().dump());
    if (*rc::gen::arbitrary<bool>())
      options.mapping.settings.emplace_back("axes.x.uneven", random_uneven());
  }
  std::string split_to(const std::string& name) {
    options.write.output = folder / name;
    split(options);
    return options.write.output;
  }

 private:
  void add_tensor(const std::string& name, json& mapping) {
    std::vector<std::string> dims = kAxes;
    Shape shape;
    for (size_t d = 0; d < dims.size(); ++d) {
      std::swap(dims[d], dims[static_cast<size_t>(*gen::between(static_cast<i64>(d), 2))]);
      shape.push_back(*gen::between(1, 7));
    }
    tensors[name] = test::numbered_tensor(name, Dtype::kBF16, shape);
    mapping["rules"].push_back({{"match", name}, {"dims", dims}});
  }
};

/// True if the manifest's mapping gives every rank what its slices say.
bool resolves_to_its_slices(const std::string& parts) {
  const LogicalCheckpoint stored = open_logical({parts});
  const AppliedMapping applied = apply_mapping(over_own_mesh(stored, {}), stored);
  for (const mapping::ResolvedTensor& resolved : applied.resolution.tensors) {
    const LogicalTensor& tensor = stored.tensors[resolved.tensor];
    if (tensor.ranks != resolved.layout->ranks()) return false;
    for (size_t h = 0; h < tensor.ranks.size(); ++h) {
      const auto stored_region = tensor.side.holders->region(static_cast<int>(h));
      if (resolved.layout->region(tensor.ranks[h]) != stored_region) return false;
    }
  }
  return applied.resolution.tensors.size() == stored.tensors.size();
}

std::string reshard_to(const std::string& parts, const mesh::Mesh& mesh,
                       const std::string& output) {
  ReshardOptions options;
  options.sources = {parts};
  options.to.mesh = mesh;
  options.write.output = output;
  reshard(options);
  return output;
}

TEST_CASE(
    "a manifest's mapping resolves to its slices, and a reshard to the same mesh moves nothing") {
  CHECK(rc::check("resolved = stored", [] {
    TwoMaps model;
    const std::string parts = model.split_to("parts");
    RC_ASSERT(resolves_to_its_slices(parts));
    PlanOptions same;
    same.sources = {parts};
    same.to_mesh = model.options.mapping.mesh;
    RC_ASSERT(make_plan(same).reshard->bytes_moved == 0);
    const std::string again =
        reshard_to(parts, *model.options.mapping.mesh, model.folder / "again");
    RC_ASSERT(folder_content(parts) == folder_content(again));
  }));
}

TEST_CASE("a reshard to another mesh is the split with the same options over it") {
  CHECK(rc::check("reshard = split", [] {
    TwoMaps model;
    const std::string parts = model.split_to("parts");
    model.options.mapping.mesh = mesh::parse_mesh(random_mesh());
    const std::string resharded =
        reshard_to(parts, *model.options.mapping.mesh, model.folder / "resharded");
    RC_ASSERT(resolves_to_its_slices(resharded));
    RC_ASSERT(folder_content(resharded) == folder_content(model.split_to("direct")));
  }));
}

std::map<std::string, std::string> weight_files(const std::string& folder) {
  auto files = folder_content(folder);
  std::erase_if(files, [](const auto& file) { return !file.first.ends_with(".safetensors"); });
  return files;
}

std::string merge_to(const std::string& parts, const std::string& output) {
  MergeOptions options;
  options.sources = {parts};
  options.write.output = output;
  merge(options);
  return output;
}

TEST_CASE("a merged model is whole on one device by its own mapping, and is split by it again") {
  CHECK(rc::check("split(merge(parts)) = parts", [] {
    TwoMaps model;
    const std::string parts = model.split_to("parts");
    const std::string whole = merge_to(parts, model.folder / "merged");
    RC_ASSERT(resolves_to_its_slices(whole));
    SplitOptions again;
    again.source = whole;
    again.mapping.mesh = model.options.mapping.mesh;
    again.mapping.layout = model.options.mapping.layout;
    again.mapping.axis_mapping = model.options.mapping.axis_mapping;
    again.write.output = model.folder / "again";
    again.mapping.allow_empty_shards = true;
    split(again);
    RC_ASSERT(weight_files(parts) == weight_files(again.write.output));
  }));
}

TEST_CASE("shards with whole experts are merged, validated and resharded without tp") {
  const StoredModel model(mapping::tiny_mixtral({.layers = 1, .kv_heads = 4}, 4));
  const TempFolder folder;
  SplitOptions options;
  options.source = model.path();
  options.mapping.mesh = mesh::parse_mesh("tp=2");
  keep_experts_whole(options.mapping, false);
  options.write.output = folder / "parts";
  split(options);
  const std::string whole = merge_to(options.write.output, folder / "whole");
  CHECK(resolves_to_its_slices(whole));
  const std::string over_ep =
      reshard_to(options.write.output, mesh::parse_mesh("ep=2"), folder / "ep");
  CHECK(resolves_to_its_slices(over_ep));
  CHECK(weight_files(merge_to(over_ep, folder / "again")) == weight_files(whole));
}

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
  CHECK_ERROR(kManifestInvalid, shards.resharded("tp=2"));
}

TEST_CASE("a recorded rule that contradicts the slices is refused for every destination") {
  const ParamShards shards;
  const std::string path = shards.parts + "/manifest.json";
  std::string manifest = text_of(path);
  const std::string mesh = R"("embed":"tp")";
  REQUIRE(manifest.find(mesh) != manifest.npos);
  std::ofstream(path) << manifest.replace(manifest.find(mesh), mesh.size(), R"("embed":null)");
  CHECK_ERROR(kManifestInvalid, shards.resharded("tp=4"));
}

TEST_CASE("a manifest without the axes of its split is read with them") {
  const ParamShards shards;
  const std::string expected = text_of(shards.resharded("tp=2") + "/manifest.json");
  shards.forget_axes();
  ReshardOptions options;
  options.sources = {shards.parts};
  options.to.mesh = mesh::parse_mesh("tp=2");
  options.to.layout = "param";
  options.write.output = shards.folder / "with-axes";
  reshard(options);
  CHECK(text_of(shards.folder / "with-axes/manifest.json") == expected);
}

TEST_CASE("a reshard without a mesh keeps that of the shards") {
  const ParamShards shards;
  const std::string tp2 = shards.resharded("tp=2");
  ReshardOptions options;
  options.sources = {tp2};
  options.to.layout = "param";
  options.write.output = shards.folder / "same-mesh";
  reshard(options);
  CHECK(text_of(tp2 + "/manifest.json") == text_of(shards.folder / "same-mesh/manifest.json"));
}

TEST_CASE("the output has the config.json that decided its layout") {
  const TempFolder folder;
  test::write_checkpoint(folder / "whole",
                         {{"w", test::numbered_tensor("w", Dtype::kBF16, {8, 4})}});
  folder.write("whole/config.json", R"({"heads": 2})");
  SplitOptions options;
  options.source = folder / "whole";
  options.mapping.path = folder.write("mapping.json", R"({"version": 1,
    "mesh": [{"axis": "tp", "size": 3}], "axes": {"heads": {"mesh": "tp", "size": "config.heads"},
    "head_dim": null}, "rules": [{"match": "w", "dims": ["heads*head_dim", null]}]})");
  options.mapping.config = folder.write("chosen.json", R"({"heads": 4})");
  options.write.output = folder / "parts";
  split(options);
  CHECK(text_of(folder / "parts/config.json") == R"({"heads": 4})");
  CHECK(resolves_to_its_slices(folder / "parts"));
  std::filesystem::remove(folder / "whole/config.json");
  options.write.output = folder / "others";
  split(options);
  CHECK(folder_content(folder / "parts") == folder_content(folder / "others"));
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
