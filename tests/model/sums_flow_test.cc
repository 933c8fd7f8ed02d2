// Allowed layouts of sums and of values derived from them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/mapping/resolve/resolve.h"
#include "lib/model/graph/graph_list.h"
#include "lib/model/price.h"
#include "tests/golden/models.h"
#include "tests/model/published.h"
#include "tests/support/checkpoint_files.h"

using namespace shardtool;

namespace {

struct Golden {
  mapping::ModelConfig config;
  std::vector<TensorSpec> tensors;
};

Golden golden_model(const std::string& name) {
  const std::string& folder = golden::model_folder(name);
  Golden found{mapping::load_config(folder + "/config.json"), {}};
  for (const auto& [tensor, content] : test::read_tensors(folder, "model"))
    found.tensors.push_back(content.spec);
  return found;
}

/// Moves before a layer's steps, by value.
std::string moves_of(const std::string& name, const std::string& preset, i64 layer) {
  const Golden model = golden_model(name);
  std::string why_not;
  const auto bound =
      model::bind_model(model::find_graph(model.config, why_not), model.config, model.tensors);
  mapping::ResolveOptions options;
  options.mesh = mesh::parse_mesh("tp=2");
  const auto resolution =
      resolve(mapping::load_mapping("preset:" + preset), model.tensors, &model.config, options);
  const auto layouts = model::layouts_of(resolution, model.tensors.size());
  model::Stream stream;
  model::LayerFlow flow;
  for (i64 i = 0; i <= layer + 1; ++i) {
    flow = model::flow(bound, static_cast<size_t>(i), layouts, resolution.mesh, {}, stream);
  }
  std::string text;
  for (const model::Step& step : flow.steps) {
    for (const model::ValueMove& move : step.before)
      text += fmt::format("{} {}; ", to_string(move.exchange.move), move.value);
  }
  return text;
}

}  // namespace

TEST_CASE("sums over a cut MLP are added up for a cutoff, in the layers that have one") {
  CHECK(moves_of("gemma3n_text", "gemma3n", 0) ==
        "all_reduce attended; all_reduce gate_sum; all_reduce gate_squares; all_reduce fed; ");
  CHECK(moves_of("gemma3n_text", "gemma3n", 1) == "all_reduce attended; all_reduce fed; ");
}

TEST_CASE("a sum over all features that is split afterwards is reduced once") {
  CHECK(moves_of("falcon_mamba", "mamba", 0) ==
        "all_reduce x; all_reduce selected; all_reduce attended; ");
}

TEST_CASE("a norm over heads on several devices adds up its squares alone") {
  CHECK(moves_of("minimax", "minimax", 0) ==
        "all_reduce x; all_reduce squares; all_reduce added; all_reduce added_mlp; ");
}

TEST_CASE("a gate of every head is where the head's features are") {
  CHECK(moves_of("laguna", "laguna", 0) == "all_reduce x; all_reduce attended; all_reduce fed; ");
  CHECK(moves_of("bailing_hybrid", "bailing_hybrid", 1) ==
        "all_reduce attended; all_reduce both; ");
}

TEST_CASE("what experts hand on is added once, behind one sum of the others and of an MLP") {
  CHECK(moves_of("longcat_flash", "longcat_flash", 1) ==
        "all_reduce attended; all_reduce fed; all_reduce attended; all_reduce both; ");
}

TEST_CASE("keys and values that later layers share, and the first embedding, are moved once") {
  CHECK(moves_of("gemma4_e2b", "gemma4", 4) == "all_reduce attended; all_reduce fed; ");
  CHECK(moves_of("zamba2", "zamba2", 4).find("first") == std::string::npos);
}
