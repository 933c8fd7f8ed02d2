#include <doctest/doctest.h>

#include "shardtool/model/graph_list.h"
#include "tests/support/throws.h"

using namespace shardtool;

namespace {

std::string own(const std::string& members) {
  return R"({
  "version": 1, "family": "mine", "description": "d", "source": "s", "model_types": [],
  )" + members +
         "}";
}

std::shared_ptr<const model::Graph> decoded(const std::string& members) {
  return std::make_shared<const model::Graph>(model::decode_own_graph(own(members), "mine.json"));
}

}  // namespace

TEST_CASE("a graph of one's own stands for the family's") {
  const auto graph = decoded(R"("extends": "llama", "requires": {"scale_depth": [2]})");
  CHECK(graph->family == "mine");
  CHECK(graph->stacks.front().blocks.front().name == "decoder");
  std::string why_not = "said before";
  const auto config = mapping::parse_config(R"({"model_type": "novel", "scale_depth": 2})", "c");
  CHECK(model::find_graph(config, graph, why_not) == graph);
  CHECK(why_not.empty());
  const auto other = mapping::parse_config(R"({"model_type": "llama", "scale_depth": 3})", "c");
  CHECK(model::find_graph(other, graph, why_not) == nullptr);
  CHECK(why_not == "c says scale_depth = 3, and the graph of mine computes 2");
}

TEST_CASE("errors of a graph of one's own are at their place in its file") {
  const auto error = testing::error_of(
      [] { return decoded(R"("extends": "llama", "parts": {"mlp": [{"op": "nothing"}]})"); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kMappingSchema);
  REQUIRE(error->place());
  CHECK(error->place()->file == "mine.json");
  CHECK(error->place()->line == 3);
  const auto unknown = testing::error_of([] { return decoded(R"("extends": "lama")"); });
  REQUIRE(unknown);
  CHECK(unknown->code() == ErrorCode::kUnknownName);
  CHECK_ERROR(kMappingSyntax, model::decode_own_graph("{", "mine.json"));
  CHECK_ERROR(kMappingSyntax, model::decode_own_graph("[]", "mine.json"));
}

TEST_CASE("every built-in graph says what it is") {
  for (const model::GraphHead& head : model::graph_heads()) {
    CAPTURE(head.name);
    CHECK_FALSE(head.description.empty());
    CHECK(model::graph_text(head.name).starts_with("{"));
  }
}
