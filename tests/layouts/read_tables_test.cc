#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "lib/api/transfer/sources/layout_source.h"
#include "tests/layouts/model_parts.h"
#include "tests/layouts/tables.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/temp_folder.h"

/// Compares what is read of a trainer's checkpoint with what the trainer's own converter makes of
/// it: read/LAYOUT/MODEL.json, written by tests/engines/torchtitan_merge.py.
namespace shardtool::layouts {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::TempFolder;
using test::Tensors;

/// The name that torchtitan 0.2 gave to a tensor.
std::string old_name(std::string name) {
  static const std::array<std::pair<std::string, std::string>, 7> kChanges{
      {{"qkv_linear.", ""},
       {"lm_head.", "output."},
       {"routed_experts.inner_experts.", "experts."},
       {"expert_bias_E", "expert_bias"},
       {"w1_EFD", "w1"},
       {"w2_EDF", "w2"},
       {"w3_EFD", "w3"}}};
  for (const auto& [now, before] : kChanges) {
    if (const size_t at = name.find(now); at != name.npos) name.replace(at, now.size(), before);
  }
  return name;
}

json merged_rows(const TempFolder& folder, const Tensors& stored, const json& table) {
  test::write_checkpoint(folder / "saved", stored);
  folder.write("config.json", table.at("config").dump());
  test::write_parts(
      api::open_in_layout({{folder / "saved"}, table.at("layout"), folder / "config.json"}),
      folder / "merged");
  return test::rows_of(test::read_tensors(folder / "merged", "model"));
}

}  // namespace

TEST_CASE("a trainer's checkpoint is read as the trainer's own converter reads it") {
  const auto paths = test::tables("torchtitan@0.3", "read");
  CHECK_FALSE(paths.empty());
  for (const fs::path& path : paths) {
    CAPTURE(path.string());
    const TempFolder folder;
    const json table = json::parse(std::ifstream(path));
    const Tensors stored = test::draw(table.at("tensors"));
    json expected = table.at("merged");
    if (!expected.contains("lm_head.weight")) {  // the converter leaves the tied output out
      expected["lm_head.weight"] = test::rows_of(stored).at("lm_head.weight");
    }
    CHECK(merged_rows(folder, stored, table) == expected);
    Tensors as_before;
    for (const auto& [name, tensor] : stored) {
      test::Tensor& renamed = as_before[old_name(name)];
      renamed = tensor;
      renamed.spec.name = old_name(name);
    }
    CHECK(merged_rows(folder, as_before, table) == expected);
  }
}

}  // namespace shardtool::layouts
