#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "lib/model/bind.h"
#include "lib/model/graph/graph_list.h"
#include "tests/support/checkpoint_files.h"

using namespace shardtool;

namespace {

/// Folders of tests/golden/make_fixtures.py: checkpoints as the library saves them.
std::vector<std::string> checkpoints() {
  std::vector<std::string> folders;
  const std::filesystem::path golden = SHARDTOOL_SOURCE_DIR "/tests/golden";
  for (const auto& entry : std::filesystem::directory_iterator(golden)) {
    if (entry.is_directory() && std::filesystem::exists(entry.path() / "config.json"))
      folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::vector<TensorSpec> specs_of(const std::string& folder) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, tensor] : test::read_tensors(folder, "model"))
    specs.push_back(tensor.spec);
  return specs;
}

}  // namespace

TEST_CASE("graphs bind every tensor that the library itself saves, in every family") {
  std::set<std::string> families;
  for (const std::string& folder : checkpoints()) {
    CAPTURE(folder);
    const auto config = mapping::load_config(folder + "/config.json");
    std::string why_not;
    auto graph = model::find_graph(config, why_not);
    REQUIRE_MESSAGE(graph != nullptr, why_not);
    families.insert(graph->family);
    const auto bound = model::bind_model(std::move(graph), config, specs_of(folder));
    const auto& stacks = bound.graph->stacks;
    size_t layers = 1;  // the end
    for (const model::Stack& stack : stacks) {
      if (stack.beside && !bound.layers.front().beside) continue;  // text only
      CHECK(bound.size(stack.layers) >= 2);
      layers += static_cast<size_t>(bound.size(stack.layers)) + (stack.end ? 2 : 1);
    }
    CHECK(bound.layers.size() == layers);
    CHECK(bound.unread == std::vector<std::string>{});
  }
  const auto all = model::families();
  CHECK(families == std::set<std::string>(all.begin(), all.end()));
}

TEST_CASE("MODELS.md has a row of every golden model, and none of another") {
  std::set<std::string> names;
  for (const std::string& folder : checkpoints()) {
    const std::string name = std::filesystem::path(folder).filename();
    names.insert(name.substr(0, name.find("-transformers-")));
  }
  std::set<std::string> rows;
  std::ifstream table(SHARDTOOL_SOURCE_DIR "/tests/golden/MODELS.md");
  for (std::string line; std::getline(table, line);) {
    const size_t end = line.find(" | ");
    if (line.starts_with("| ") && end != line.npos) rows.insert(line.substr(2, end - 2));
  }
  rows.erase("model");
  CHECK(rows == names);
}
