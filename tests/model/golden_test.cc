#include <doctest/doctest.h>

#include <fstream>
#include <set>

#include "lib/model/bind.h"
#include "lib/model/graph/graph_list.h"
#include "tests/golden/models.h"
#include "tests/support/checkpoint_files.h"

using namespace shardtool;

namespace {

std::vector<TensorSpec> specs_of(const std::string& folder) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, tensor] : test::read_tensors(folder, "model"))
    specs.push_back(tensor.spec);
  return specs;
}

}  // namespace

TEST_CASE("graphs bind every tensor that the library itself saves, in every family") {
  std::set<std::string> families;
  for (const std::string& name : golden::model_names()) {
    CAPTURE(name);
    const std::string folder = golden::model_folder(name);
    const auto config = mapping::load_config(folder + "/config.json");
    std::string why_not;
    auto graph = model::find_graph(config, why_not);
    REQUIRE_MESSAGE(graph != nullptr, why_not);
    families.insert(graph->family);
    const auto bound = model::bind_model(std::move(graph), config, specs_of(folder));
    const auto& stacks = bound.graph->stacks;
    size_t layers = 1;  // the end
    for (const model::Stack& stack : stacks) {
      if (stack.is_vision_encoder && !bound.layers.front().is_vision_encoder)
        continue;  // text only
      CHECK(bound.size(stack.layers) >= 2);
      layers += static_cast<size_t>(bound.size(stack.layers)) + (stack.end ? 2 : 1);
    }
    CHECK(bound.layers.size() == layers);
    CHECK(bound.unread == std::vector<std::string>{});
  }
  const auto all = model::families();
  CHECK(families == std::set<std::string>(all.begin(), all.end()));
}

TEST_CASE("the weights of every golden model are those that the reference library computed with") {
  for (const std::string& name : golden::model_names()) {
    CAPTURE(name);
    const golden::Checksums found = golden::checksums(name);
    CHECK(found.written == found.described);
  }
}

TEST_CASE("MODELS.md has a row of every golden model, and none of another") {
  const auto& models = golden::model_names();
  const std::set<std::string> names(models.begin(), models.end());
  std::set<std::string> rows;
  std::ifstream table(SHARDTOOL_SOURCE_DIR "/tests/golden/MODELS.md");
  for (std::string line; std::getline(table, line);) {
    const size_t end = line.find(" | ");
    if (line.starts_with("| ") && end != line.npos) rows.insert(line.substr(2, end - 2));
  }
  rows.erase("model");
  CHECK(rows == names);
}
