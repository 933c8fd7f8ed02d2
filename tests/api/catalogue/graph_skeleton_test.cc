#include "lib/api/catalogue/graph_skeleton.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool::test {
namespace {

using nlohmann::json;

/// Starts a graph for a layer of GPT's names: attention and MLP name their outputs alike. An empty
/// `config` writes no config.json.
std::string start_graph(const std::map<std::string, Shape>& more, const std::string& config) {
  std::map<std::string, Shape> shapes = more;
  shapes.insert({{"wte.weight", {64, 16}},
                 {"h.0.ln_1.weight", {16}},
                 {"h.0.ln_2.weight", {16}},
                 {"h.0.attn.c_attn.weight", {16, 48}},
                 {"h.0.attn.c_proj.weight", {16, 16}},
                 {"h.0.mlp.c_fc.weight", {16, 40}},
                 {"h.0.mlp.c_proj.weight", {40, 16}}});
  Tensors tensors;
  for (const auto& [name, shape] : shapes)
    tensors[name] = numbered_tensor(name, Dtype::kF32, shape);
  const TempFolder folder;
  write_checkpoint(folder / "own", tensors);
  if (!config.empty()) folder.write("own/config.json", config);
  return api::graph_skeleton(folder / "own");
}

json skeleton_of(const std::map<std::string, Shape>& more) {
  return json::parse(start_graph(more, R"({"model_type": "own", "n_head": 4, "n_embd": 16})"));
}

json weight_of(const json& graph, const std::string& part, const std::string& out) {
  for (const json& op : graph["parts"][part]) {
    if (op["out"] == out) return op["weight"];
  }
  return {};
}

TEST_CASE("outputs of one name are the attention's and the MLP's by the tensors beside them") {
  const json graph = skeleton_of({});
  CHECK(weight_of(graph, "attention", "attended") == "layer/attn.c_proj.weight");
  CHECK(weight_of(graph, "mlp", "fed") == "layer/mlp.c_proj.weight");
  CHECK(graph["sizes"]["mlp"] == 40);
  CHECK(graph["sizes"]["embed"] == 16);
}

TEST_CASE("a graph is refused for heads that nothing tells, with the reason") {
  const auto reason = [](const std::string& config) {
    const auto error = testing::error_of([&] { return start_graph({}, config); });
    REQUIRE(error.has_value());
    CHECK(std::string(error->what()).find("the number of heads is not known") != std::string::npos);
    return error->notes().front().second;
  };
  CHECK(reason("") == "no config.json beside the weights");
  CHECK(reason(R"({"model_type": "own", "n_head": 5})") ==
        "no number of heads in config.json that fits the weights");
}

TEST_CASE("a graph refers to the eps and theta of config.json, and says which it assumes") {
  const json graph = json::parse(
      start_graph({}, R"({"model_type": "own", "n_head": 4, "n_embd": 16, "layer_norm_eps": 1e-12,
              "rope_parameters": {"rope_theta": 500000.0}})"));
  CHECK(graph["numbers"] == json::parse(R"({"eps": {"config": "layer_norm_eps", "default": 1e-06},
                        "theta": {"config": "rope_parameters.rope_theta", "default": 10000.0}})"));
  const auto description = graph["description"].get<std::string>();
  CHECK(description.find("eps 1e-12 (layer_norm_eps of config.json)") != std::string::npos);
  CHECK(description.find("theta 500000.0 (rope_parameters.rope_theta") != std::string::npos);

  const json assumed = skeleton_of({});
  CHECK(assumed["numbers"] == json::parse(R"({"eps": 1e-06, "theta": 10000.0})"));
  CHECK(assumed["description"].get<std::string>().find("eps 1e-06 (assumed)") != std::string::npos);
}

TEST_CASE("the description of a graph lists the tensors that no op reads") {
  const auto description = [](const std::map<std::string, Shape>& more) {
    return skeleton_of(more)["description"].get<std::string>();
  };
  CHECK(description({}).find("no part") == std::string::npos);
  const std::string listed = description({{"h.0.attn.lambda_q1", {4}}, {"scale", {1}}});
  CHECK(listed.ends_with("these tensors have no part in it yet: layer/attn.lambda_q1, scale"));
}

}  // namespace
}  // namespace shardtool::test
