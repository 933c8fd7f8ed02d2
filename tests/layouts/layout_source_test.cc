#include "lib/api/transfer/sources/layout_source.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "lib/api/check.h"
#include "lib/api/transfer/sources/missing_ranks.h"
#include "lib/format/reader.h"
#include "lib/layouts/engine_layout.h"
#include "tests/layouts/model_parts.h"
#include "tests/layouts/tables.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
#include "tests/support/torch_files.h"

/// Files of ranks without a manifest, as the engines' own scripts write them.
namespace shardtool::layouts {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::TempFolder;
using test::Tensors;

/// Splits the model of a table and removes the manifest. Returns its tensors.
Tensors split_without_manifest(const TempFolder& folder, const json& table, const json& mesh) {
  Tensors whole = test::write_model(folder / "whole", table);
  api::SplitOptions options;
  options.source = folder / "whole";
  options.mapping = test::choice_of(mesh.at("flags"));
  options.write.output = folder / "parts";
  options.write.layout = table.at("layout");
  api::split(options);
  const json manifest = json::parse(std::ifstream(folder / "parts/manifest.json"));
  for (const std::string name : manifest.at("dropped")) whole.erase(name);
  fs::remove(folder / "parts/manifest.json");
  return whole;
}

/// The tables of DeepSeek have some of the layers only, which is why `merge` refuses them.
void merge_parts(const TempFolder& folder, const std::string& layout) {
  test::write_parts(api::open_in_layout({{folder / "parts"}, layout, ""}), folder / "merged");
}

/// First table of a layout.
json table_of(const std::string& layout) {
  return json::parse(std::ifstream(test::tables(layout).front()));
}

}  // namespace

TEST_CASE("files that an engine's own script wrote are merged by the layout's table") {
  for (const std::string layout : {"deepseek@3.2", "meta@3"}) {
    for (const fs::path& path : test::tables(layout)) {
      const json table = json::parse(std::ifstream(path));
      for (const json& mesh : table.at("meshes")) {
        CAPTURE(path.string());
        const TempFolder folder;
        const Tensors whole = split_without_manifest(folder, table, mesh);
        merge_parts(folder, layout);
        CHECK(test::rows_of(test::read_tensors(folder / "merged", "model")) ==
              test::rows_of(whole));
      }
    }
  }
}

TEST_CASE("files that are no complete parts of the layout are refused") {
  const json table = table_of("deepseek@3.2");
  const TempFolder folder;
  const json& mesh = table.at("meshes").front();
  split_without_manifest(folder, table, mesh);
  const std::string last = folder / "parts/model3-mp4.safetensors";
  const Tensors good = test::read_tensors(folder / "parts", "model3-mp4");
  const auto write = [&](const Tensors& tensors) {
    test::write_checkpoint(folder / "other", tensors);
    fs::rename(folder / "other/model.safetensors", last);
  };
  Tensors lacking = good;
  lacking.erase("layers.0.attn.wo.weight");
  write(lacking);
  CHECK_ERROR(kCoverage, merge_parts(folder, "deepseek"));
  Tensors narrower = good;
  narrower["embed.weight"] = test::numbered_tensor("embed.weight", Dtype::kBF16, {9, 32});
  write(narrower);
  CHECK_ERROR(kShapeMismatch, merge_parts(folder, "deepseek"));
  // The advice to run check would lead to the same error again.
  const auto error = testing::error_of([&] { merge_parts(folder, "deepseek"); });
  REQUIRE(error);
  REQUIRE(!error->help_lines().empty());
  CHECK(error->help_lines().front().find("shardtool check") == std::string::npos);
  Tensors unknown = good;
  unknown["layers.0.attn.w9.weight"] =
      test::numbered_tensor("layers.0.attn.w9.weight", Dtype::kBF16, {1});
  write(unknown);
  CHECK_ERROR(kNoRule, merge_parts(folder, "deepseek"));
  write(good);
  CHECK_NOTHROW(merge_parts(folder, "deepseek"));
  fs::remove(last);
  CHECK_ERROR(kCoverage, merge_parts(folder, "deepseek"));
}

TEST_CASE("all missing ranks are named, also those behind the last file") {
  const TempFolder folder;
  const std::string source = std::string(SHARDTOOL_SOURCE_DIR) + "/samples/tiny-llama";
  const auto error_without = [&](const std::vector<int>& ranks) {
    api::SplitOptions options;
    options.source = source;
    options.mapping.mesh = mesh::Mesh({{"tp", 8}});
    options.write.output = folder / "parts";
    options.write.layout = "meta";
    fs::remove_all(folder / "parts");
    api::split(options);
    fs::remove(folder / "parts/manifest.json");
    for (const int rank : ranks) {
      fs::remove(folder / fmt::format("parts/consolidated.{:02}.safetensors", rank));
    }
    return testing::error_of([&] { merge_parts(folder, "meta"); });
  };
  CHECK_FALSE(error_without({}));
  for (const std::vector<int>& ranks :
       {std::vector{2, 5}, {7}, {0}, {2, 5, 7}, {1, 2, 3, 4, 5, 6, 7}}) {
    CAPTURE(ranks.size());
    const auto error = error_without(ranks);
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kCoverage);
    CHECK(error->message() == fmt::format("the files of {} of 8 ranks are missing", ranks.size()));
    REQUIRE(!error->notes().empty());
    for (const int rank : ranks) {
      if (ranks.size() < 5) {
        CHECK(error->notes().front().second.find(
                  fmt::format("consolidated.{:02}.safetensors", rank)) != std::string::npos);
      }
    }
  }
}

TEST_CASE("names that count the ranks leave no doubt about how many there are") {
  check::ForeignShards shards;
  for (const i64 rank : {0, 1}) {
    shards.files.push_back({{rank, std::nullopt, 2}, fmt::format("model{}-mp2", rank), 0});
    shards.tensors.push_back({{"w", Dtype::kF32, {2}}, rank, {}});
  }
  shards.extents = {8};
  const auto fits = [](i64 ranks) { return ranks == 4; };
  CHECK(api::ranks_of(shards, fits) == 2);
  for (check::RankFile& file : shards.files) file.name.ranks.reset();
  CHECK(api::ranks_of(shards, fits) == 4);
}

TEST_CASE("Meta's own .pth files are read, without their table of rotations") {
  const json table = table_of("meta@3");
  const TempFolder folder;
  const Tensors whole = split_without_manifest(folder, table, table.at("meshes").back());
  for (const auto& entry : fs::directory_iterator(folder / "parts")) {
    const fs::path path = entry.path();
    if (path.extension() != ".safetensors") continue;
    Tensors part = test::read_tensors(folder / "parts", path.stem().string());
    part["rope.freqs"] = test::numbered_tensor("rope.freqs", Dtype::kF32, {4});
    folder.write("parts/" + path.stem().string() + ".pth", test::torch_zip(part));
    fs::remove(path);
  }
  api::MergeOptions options;
  options.sources = {"meta:" + folder / "parts"};
  options.write.output = folder / "merged";
  const api::TransformReport report = api::merge(options);
  CHECK(test::rows_of(test::read_tensors(folder / "merged", "model")) == test::rows_of(whole));
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("rope.freqs") != std::string::npos);
  fs::copy_file(folder / "parts/consolidated.00.pth", folder / "parts/consolidated.01.pth",
                fs::copy_options::overwrite_existing);
  options.write.force = true;
  CHECK_ERROR(kDataMismatch, api::merge(options));
}

TEST_CASE("merge writes the config.json that it is given, with the changes of the values") {
  const TempFolder folder;
  const auto merged = [&](const std::string& source, bool unpacks) {
    api::MergeOptions options;
    options.sources = {source};
    options.config = folder / "config.json";
    options.write.output = folder / "merged";
    options.write.dequantize = unpacks;
    api::merge(options);
    return json::parse(std::ifstream(options.write.output + "/config.json"));
  };
  SUBCASE("for files of another tool") {
    const json table = table_of("meta@3");
    split_without_manifest(folder, table, table.at("meshes").back());
    fs::remove(folder / "parts/config.json");
    const json config = table.at("config");
    folder.write("config.json", config.dump());
    CHECK(merged("meta:" + folder / "parts", false) == config);
  }
  SUBCASE("for weights that are unpacked") {
    const auto scale = test::numbered_tensor("a.weight_scale", Dtype::kF32, {1});
    const auto weight = test::numbered_tensor("a.weight", Dtype::kF8E4M3, {4, 4});
    test::write_checkpoint(folder / "packed", {{"a.weight", weight}, {"a.weight_scale", scale}});
    folder.write("config.json", R"({"hidden_size": 4, "quantization_config":
      {"quant_method": "fp8", "activation_scheme": "static"}})");
    const json expected = {{"hidden_size", 4}, {"torch_dtype", "bfloat16"}};
    CHECK(merged(folder / "packed", true) == expected);
  }
}

TEST_CASE("check reads files of another tool as merge does, and compares their copies") {
  const json table = table_of("meta@3");
  const TempFolder folder;
  split_without_manifest(folder, table, table.at("meshes").back());
  api::CheckOptions options;
  options.sources = {"meta:" + folder / "parts"};
  options.data = check::DataSubset{};
  options.ignore = {"ST0701", "ST0702"};  // numbered tensors have any bits
  const api::CheckReport sound = api::check(options);
  CHECK(sound.findings.empty());
  CHECK(sound.bytes_read == sound.bytes);
  Tensors last = test::read_tensors(folder / "parts", "consolidated.01");
  last.at("norm.weight").bytes.front() ^= 1;
  test::write_checkpoint(folder / "other", last);
  fs::rename(folder / "other/model.safetensors", folder / "parts/consolidated.01.safetensors");
  const api::CheckReport changed = api::check(options);
  REQUIRE(changed.findings.size() == 1);
  CHECK(changed.findings[0].rule == check::CheckRule::kReplicasDiffer);
  CHECK(changed.findings[0].file.find("consolidated.01") != std::string::npos);
  options.sources = {"vllm:" + folder / "parts"};
  CHECK_ERROR(kUsage, api::check(options));
}

TEST_CASE("a manifest says more than the name of a layout") {
  const json table = table_of("meta@3");
  const TempFolder folder;
  split_without_manifest(folder, table, table.at("meshes").front());
  folder.write("parts/manifest.json", "{}");
  CHECK_ERROR(kUsage, merge_parts(folder, "meta"));
}

TEST_CASE("a layout that is read has a name of its own, and needs no manifest") {
  const std::vector<std::string> formats = format::format_names();
  for (const std::string& name : read_layout_names()) {
    CAPTURE(name);
    CHECK(std::ranges::count(formats, name) == 0);
    CHECK(find_layout(name).form.has_chunks == false);
  }
}

}  // namespace shardtool::layouts
