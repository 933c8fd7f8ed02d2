#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/xxh3/xxh3.h"
#include "lib/api/check.h"
#include "lib/api/transform.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/temp_folder.h"

/// Compares the files of a layout with the parameters that the engine's own loader makes of the
/// whole checkpoint: golden/LAYOUT/MODEL.json, written by tests/engines/sharded_state.py.
namespace shardtool::layouts {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::TempFolder;
using test::Tensors;

std::vector<fs::path> tables() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(SHARDTOOL_SOURCE_DIR) /
                                                            "tests" / "layouts" / "golden")) {
    if (entry.is_regular_file()) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Draws the weights that the engine's loader read.
Tensors draw(const json& tensors) {
  Tensors drawn;
  for (const auto& [name, row] : tensors.items()) {
    drawn[name] = test::distinct_tensor(
        {name, parse_dtype(row.at(0).get<std::string>()).value(), row.at(1).get<Shape>()});
  }
  return drawn;
}

api::MappingChoice choice_of(const json& flags) {
  api::MappingChoice choice;
  for (size_t i = 0; i + 1 < flags.size(); i += 2) {
    const std::string value = flags.at(i + 1);
    if (flags.at(i) == "--mesh") choice.mesh = mesh::parse_mesh(value);
    if (flags.at(i) == "--axes") choice.layout = value;
  }
  return choice;
}

/// Dtype, shape and hash of every tensor in a file, as in the tables.
json rows_of(const Tensors& tensors) {
  json rows = json::object();
  for (const auto& [name, tensor] : tensors) {
    rows[name] = {std::string(to_string(tensor.spec.dtype)), tensor.spec.shape,
                  kernels::xxh3_hex(std::as_bytes(std::span(tensor.bytes))).substr(0, 16)};
  }
  return rows;
}

/// Rows of a rank: those of the first one, with the rank's own in place of them.
json rows_of_rank(const json& ranks, size_t rank) {
  json rows = ranks.at(0);
  for (const auto& [name, row] : ranks.at(rank).items()) {
    if (row.is_null()) {
      rows.erase(name);
    } else {
      rows[name] = row;
    }
  }
  return rows;
}

std::string first_file_of(i64 rank, const mesh::Mesh& mesh) {
  const bool has_stages = mesh.axes().front().name == "pp";
  const i64 tp = has_stages && mesh.axes().size() == 1 ? 0 : mesh.index_on("tp", rank);
  return has_stages ? "model-pp-" + std::to_string(mesh.index_on("pp", rank)) + "-tp-" +
                          std::to_string(tp) + "-part-"
                    : "model-rank-" + std::to_string(tp) + "-part-";
}

}  // namespace

TEST_CASE("the files of a layout hold what the engine's loader makes of the whole checkpoint") {
  CHECK_FALSE(tables().empty());
  for (const fs::path& path : tables()) {
    const json table = json::parse(std::ifstream(path));
    const TempFolder folder;
    const Tensors whole = draw(table.at("tensors"));
    test::write_checkpoint(folder / "whole", whole);
    folder.write("whole/config.json", table.at("config").dump());
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
      api::split(options);
      for (size_t rank = 0; rank < mesh.at("ranks").size(); ++rank) {
        const auto found = test::read_tensors(
            folder / "parts", first_file_of(static_cast<i64>(rank), *options.mapping.mesh));
        CHECK(rows_of(found) == rows_of_rank(mesh.at("ranks"), rank));
      }
      api::MergeOptions merged;
      merged.sources = {folder / "parts"};
      merged.write.output = folder / "merged";
      merged.write.force = true;
      api::merge(merged);
      CHECK(rows_of(test::read_tensors(folder / "merged", "model")) == rows_of(whole));
    }
  }
}

}  // namespace shardtool::layouts
