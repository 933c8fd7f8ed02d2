#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/transform.h"
#include "lib/layouts/engine_layout.h"
#include "tests/layouts/tables.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/temp_folder.h"

/// Compares the files of a layout with the parameters that the engine's own loader makes of the
/// whole checkpoint, or with the files that the engine's own script makes of it:
/// golden/LAYOUT/MODEL.json, written by tests/engines/sharded_state.py and deepseek_convert.py.
namespace shardtool::layouts {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::choice_of;
using test::rows_of;
using test::tables;
using test::TempFolder;
using test::Tensors;

/// Replaces rows by those that differ: null for none, and a hash for the same type and shape.
json with_differences(json rows, const json& differences) {
  for (const auto& [name, row] : differences.items()) {
    if (row.is_null()) {
      rows.erase(name);
    } else if (row.is_string()) {
      rows.at(name).at(2) = row;
    } else {
      rows[name] = row;
    }
  }
  return rows;
}

/// Rows of every rank of a mesh. Those of its first rank are told by those of the first mesh's.
std::vector<json> rows_of_ranks(const json& meshes, const json& mesh) {
  const json& base = meshes.front().at("ranks").front();
  const json& ranks = mesh.at("ranks");
  std::vector<json> rows{with_differences(base, ranks.front())};
  for (size_t rank = 1; rank < ranks.size(); ++rank)
    rows.push_back(with_differences(rows.front(), ranks[rank]));
  return rows;
}

/// Tensors that the manifest lists as left out.
std::vector<std::string> dropped_by(const std::string& folder) {
  return json::parse(std::ifstream(folder + "/manifest.json")).at("dropped");
}

json without(json rows, const std::vector<std::string>& names) {
  for (const std::string& name : names) rows.erase(name);
  return rows;
}

/// Begin of the names of a rank's files.
std::string files_of(const EngineLayout& layout, const mesh::Mesh& typed, i64 rank) {
  const FileNames& names = names_for(layout, typed);
  const std::string first = file_name(names, with_axes(names, typed), rank, 0);
  return names.has_parts ? first.substr(0, first.rfind('0')) : first;
}

}  // namespace

TEST_CASE("the files of a layout hold what the engine's loader makes of the whole checkpoint") {
  CHECK_FALSE(tables().empty());
  for (const fs::path& path : tables()) {
    const json table = json::parse(std::ifstream(path));
    const TempFolder folder;
    const Tensors whole = test::write_model(folder / "whole", table);
    for (const json& mesh : table.at("meshes")) {
      CAPTURE(path.filename().string());
      CAPTURE(mesh.at("flags").dump());
      api::SplitOptions options;
      options.source = folder / "whole";
      options.mapping = choice_of(mesh.at("flags"));
      options.write.output = folder / "parts";
      options.write.layout = table.at("layout");
      options.write.force = true;
      options.write.max_file_size = 20'000;  // several parts
      for (const std::string& warning : api::split(options).warnings) {
        CHECK(warning.find("experimental") == std::string::npos);  // the engine loaded these
      }
      const std::vector<json> expected = rows_of_ranks(table.at("meshes"), mesh);
      for (size_t rank = 0; rank < expected.size(); ++rank) {
        const EngineLayout& layout = find_layout(options.write.layout);
        const auto found = test::read_tensors(
            folder / "parts", files_of(layout, *options.mapping.mesh, static_cast<i64>(rank)));
        CHECK(rows_of(found) == expected[rank]);
      }
      api::MergeOptions merged;
      merged.sources = {folder / "parts"};
      merged.write.output = folder / "merged";
      merged.write.force = true;
      api::merge(merged);
      const json back = rows_of(test::read_tensors(folder / "merged", "model"));
      CHECK(back == without(rows_of(whole), dropped_by(folder / "parts")));
    }
  }
}

TEST_CASE("a split into files that no engine has loaded yet says so") {
  const TempFolder folder;
  const fs::path path =
      fs::path(SHARDTOOL_SOURCE_DIR) / "tests/layouts/golden/vllm@0.32/llama_fp8.json";
  test::write_model(folder / "whole", json::parse(std::ifstream(path)));
  api::SplitOptions options;
  options.source = folder / "whole";
  options.mapping = choice_of({"--mesh", "pp=2"});
  options.write.output = folder / "parts";
  options.write.layout = "vllm";
  const auto warnings = api::split(options).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(
      warnings[0] ==
      "experimental, since no engine has loaded such files of vllm@0.32 yet: quantised weights on "
      "pipeline stages");
}

}  // namespace shardtool::layouts
