#include <doctest/doctest.h>

#include "lib/model/bind.h"
#include "lib/model/graph/graph_list.h"
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

TEST_CASE("an unknown op or activation is refused with the nearest known one") {
  const auto advice = [](const std::string& op) {
    const auto error = testing::error_of(
        [&] { return decoded(R"("extends": "llama", "parts": {"mlp": [)" + op + "]}"); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kMappingSchema);
    REQUIRE(!error->help_lines().empty());
    return error->place()->pointer + ": " + error->help_lines().front();
  };
  CHECK(advice(R"({"op": "lineer"})") == "/parts/mlp/0/op: did you mean 'linear'?");
  CHECK(advice(R"({"op": "act", "in": "g", "out": "a", "kind": "sillu"})") ==
        "/parts/mlp/0/kind: did you mean 'silu'?");
  CHECK(advice(
            R"({"op": "act", "in": "g", "out": "a", "kind": {"config": "c", "default": "tan"}})") ==
        "/parts/mlp/0/kind: did you mean 'tanh'?");
}

TEST_CASE("a size that config.json or the graph does not give is refused when it is used") {
  const auto config = mapping::parse_config(R"({"width": 4})", "c");
  const auto sizes = model::sizes_of(
      *decoded(
          R"("extends": "llama", "sizes": {"embed": "config.width", "mlp": "config.wdth * 2"})"),
      config);
  CHECK(sizes.size(mapping::parse_dim("embed")) == 4);
  const auto error = testing::error_of([&] { return sizes.size(mapping::parse_dim("mlp")); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kConfig);
  CHECK(testing::has_note(*error, "size", "config.wdth * 2"));
  REQUIRE(error->place());
  CHECK(error->place()->file == "mine.json");
  CHECK_ERROR(kUnknownName, sizes.size(mapping::parse_dim("depth")));
}

TEST_CASE("an entry of one's own graph that nothing uses is refused at its place") {
  const auto refusal = [](const std::string& members) {
    const auto error =
        testing::error_of([&] { return decoded(R"("extends": "llama",)" + members); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kMappingSchema);
    REQUIRE(error->place());
    CHECK(error->place()->file == "mine.json");
    CHECK(error->place()->line == 3);
    CAPTURE(error->message());
    REQUIRE_FALSE(error->help_lines().empty());
    return error->message() + "; " + error->help_lines().front();
  };
  const std::string ops = R"([{"op": "add", "in": ["y", "x"], "out": "x"}])";
  CHECK(refusal(R"("parts": {"mlp_addd": )" + ops + "}") ==
        "nothing in the graph uses the part 'mlp_addd'; did you mean 'mlp_add'?");
  CHECK(
      refusal(R"("parts": {"further": )" + ops + "}") ==
      "nothing in the graph uses the part 'further'; delete it, or name it where it shall be used");
  CHECK(refusal(R"("sizes": {"kv_headsx": 2})") ==
        "nothing in the graph uses the size 'kv_headsx'; did you mean 'kv_heads'?");
  CHECK(refusal(R"("numbers": {"rope_thetaa": {"config": "rope_thetaa", "default": 1}})")
            .starts_with("nothing in the graph uses the number 'rope_thetaa'"));
  CHECK(refusal(R"("layer_sets": {"odd": {"last": 1, "of": 4}})") ==
        "nothing in the graph uses the layer set 'odd'; delete it, or name it where it shall be "
        "used");
  CHECK(refusal(R"("prefix": {"layr": "layers.<layer>."})") ==
        "nothing in the graph uses the prefix 'layr'; did you mean 'layer'?");
  CHECK_NOTHROW(decoded(R"("extends": "llama", "parts": {"mlp_add": )" + ops + "}"));
  CHECK_NOTHROW(decoded(R"("extends": "llama", "sizes": {"kv_heads": "axes.own", "own": 2})"));
}

TEST_CASE("every built-in graph can be a graph of one's own") {
  for (const std::string& family : model::families()) {
    CAPTURE(family);
    CHECK_NOTHROW(model::decode_own_graph(model::graph_text(family), "mine.json"));
  }
}

TEST_CASE("every built-in graph says what it is") {
  for (const model::GraphHead& head : model::graph_heads()) {
    CAPTURE(head.name);
    CHECK_FALSE(head.description.empty());
    CHECK(model::graph_text(head.name).starts_with("{"));
  }
}

TEST_CASE("sizes of a graph that refer to each other are refused with the circle and its place") {
  const auto graph = decoded(R"("extends": "llama", "sizes": {"a": "axes.b", "b": "axes.a + 1"})");
  const auto config = mapping::parse_config("{}", "c");
  const auto error = testing::error_of([&] { return model::sizes_of(*graph, config); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kSizeExpression);
  REQUIRE(error->place());
  CHECK(error->place()->file == "mine.json");
  CHECK(error->place()->line == 3);
  REQUIRE_FALSE(error->notes().empty());
  CHECK(error->notes().front().second == "a -> b -> a");
}

TEST_CASE("sizes in a row longer than the stack, or each named twice, cost no more than they are") {
  const auto sizes = [](int count, const std::string& times) {
    std::string text = R"("extends": "llama", "sizes": {"s0": 1)";
    for (int i = 1; i < count; ++i) {
      const std::string before = "axes.s" + std::to_string(i - 1);
      text += ", \"s" + std::to_string(i) + "\": \"" + before + times + before + '"';
    }
    return text + ", \"head_dim\": \"axes.s" + std::to_string(count - 1) + "\"}";
  };
  const auto config = mapping::parse_config("{}", "c");
  CHECK_ERROR(kLimit, model::sizes_of(*decoded(sizes(100'000, " / ")), config));
  const auto doubled = model::sizes_of(*decoded(sizes(60, " + ")), config);
  CHECK(doubled.sizes.at("s59") == i64{1} << 59);
}

TEST_CASE("a name with more spellings than can be tried is refused at its place") {
  std::string choices;
  for (int i = 0; i < 70; ++i) choices += "{a,b}";
  const auto error = testing::error_of(
      [&] { return decoded(R"("extends": "llama", "prefix": {"layer": ")" + choices + "\"}"); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kLimit);
  REQUIRE(error->place());
}

TEST_CASE("a graph has no more layers than a model may have, whatever config.json says") {
  const auto graph = decoded(R"("sizes": {"layers": "config.num_hidden_layers", "one": 1},
    "start": [{"op": "given", "out": "x", "size": "one"}],
    "blocks": [{"name": "empty", "ops": [{"op": "act", "in": "x", "out": "x", "kind": "silu"}]}],
    "end": [{"op": "act", "in": "x", "out": "logits", "kind": "silu"}])");
  const auto config = mapping::parse_config(R"({"num_hidden_layers": 1000000000000000000})", "c");
  const auto error = testing::error_of([&] { return model::bind_model(graph, config, {}); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kConfig);
}
