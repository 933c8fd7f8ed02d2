#include "shardtool/model/graph.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "shardtool/model/bind.h"
#include "shardtool/model/graph_list.h"
#include "tests/support/throws.h"

using namespace shardtool;
using testing::error_of;

namespace {

std::string refusal(std::string_view text) {
  const auto error = error_of([&] { return model::decode_graph({{"mine", text}}); });
  REQUIRE(error);
  CHECK((error->code() == ErrorCode::kMappingSchema || error->code() == ErrorCode::kMappingSyntax));
  return error->message();
}

/// A graph of one op after the embedding.
std::string graph_with(std::string_view op) {
  return std::string(R"({"version": 1, "family": "mine", "description": "d", "source": "s",
    "model_types": ["mine"], "sizes": {"n": 4, "layers": 1},
    "start": [{"op": "embed", "out": "x", "table": "w", "rows": "n", "size": "n"}],
    "blocks": [{"name": "b", "ops": [)") +
         std::string(op) + R"(]}],
    "end": [{"op": "act", "in": "x", "out": "y", "kind": "silu"}]})";
}

std::string why_no_graph(const std::string& config) {
  std::string why_not;
  CHECK(model::find_graph(mapping::parse_config(config, "config.json"), why_not) == nullptr);
  return why_not;
}

}  // namespace

TEST_CASE("every built-in graph decodes and says what it was read from") {
  const auto names = model::families();
  CHECK(names.size() == 24);
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (const std::string& name : names) {
    CAPTURE(name);
    const model::Graph graph = model::load_graph(name);
    CHECK(graph.family == name);
    CHECK_FALSE(graph.source.empty());
    CHECK_FALSE(graph.blocks.empty());
    CHECK_FALSE(graph.model_types.empty());
  }
}

TEST_CASE("a family without a graph is named, not guessed") {
  CHECK(why_no_graph(R"({"model_type": "mamba2"})") ==
        "no graph is built in for the model type 'mamba2'");
  CHECK(why_no_graph("{}") == "config.json names no model_type");
  CHECK(
      why_no_graph(R"({"model_type": "gpt_neox", "use_parallel_residual": false})") ==
      "config.json says use_parallel_residual = false, and the graph of gpt_neox computes null or "
      "true");
  CHECK_ERROR(kUnknownName, model::load_graph("lama"));
}

TEST_CASE("Kimi K2 is DeepSeek V3 under a name of its own") {
  std::string why_not;
  const auto graph = model::find_graph(
      mapping::parse_config(R"({"model_type": "kimi_k2"})", "config.json"), why_not);
  REQUIRE(graph != nullptr);
  CHECK(graph->family == "deepseek_v3");
}

TEST_CASE("a config that asks for another computation than the graph's is refused") {
  for (const char* config : {R"({"model_type": "gpt_oss", "swiglu_limit": 6.5})",
                             R"({"model_type": "gpt_oss", "swiglu_alpha": 1})",
                             R"({"model_type": "gemma", "hidden_act": "relu"})",
                             R"({"model_type": "gemma2", "use_bidirectional_attention": true})",
                             R"({"model_type": "deepseek_v2", "norm_topk_prob": true})",
                             R"({"model_type": "deepseek_v3", "rope_interleave": false})",
                             R"({"model_type": "exaone4", "sliding_window": 4096})",
                             R"({"model_type": "olmoe", "clip_qkv": 8.0})",
                             R"({"model_type": "minimax_m2", "head_dim": 128})"}) {
    CAPTURE(config);
    CHECK(why_no_graph(config).find(", and the graph of ") != std::string::npos);
  }
  for (const char* limit : {"7", "7.0", "null"}) {
    CAPTURE(limit);
    const std::string config = R"({"model_type": "gpt_oss", "swiglu_limit": )";
    std::string why_not;
    CHECK(model::find_graph(mapping::parse_config(config + limit + "}", "config.json"), why_not));
  }
}

TEST_CASE("an op with an unknown kind, key, value or dimension is refused with its place") {
  CHECK(model::decode_graph({{"mine", graph_with(R"({"op": "act", "in": "x", "out": "x",
    "kind": "silu"})")}})
            .blocks.size() == 1);
  CHECK(refusal(graph_with(R"({"op": "fft", "in": "x", "out": "x"})"))
            .ends_with("must be an op whose kind is known"));
  CHECK(refusal(graph_with(R"({"op": "act", "in": "x", "out": "x", "kind": "silu", "of": 1})"))
            .ends_with("has an unknown key 'of'"));
  CHECK(refusal(graph_with(R"({"op": "act", "in": "z", "out": "x", "kind": "silu"})")) ==
        "the value 'z' is read before an op makes it");
  CHECK(refusal(graph_with(R"({"op": "norm", "in": "x", "out": "x", "kind": "rms", "size": "n",
    "weight": "w", "eps": "eps"})"))
            .ends_with("the name of one of the \"numbers\""));
  CHECK(refusal(graph_with(R"("nothing")")).ends_with("an op or the name of one of the \"parts\""));
  CHECK(refusal(graph_with(R"({"op": "split", "in": "x", "out": ["a", "b"], "sections": ["n", "n"],
    "order": "per_head"})"))
            .find("\"heads\"") != std::string::npos);
  refusal("{");
}

TEST_CASE("numbers come from the config, else from the graph") {
  const auto config = mapping::parse_config(R"({"a": 2.5, "b": null, "c": "x"})", "config.json");
  CHECK(model::value_of({{"a"}, 1}, config) == 2.5);
  CHECK(model::value_of({{"b"}, 1}, config) == 1);
  CHECK(model::value_of({{"b", "a"}, 1}, config) == 2.5);
  CHECK(model::value_of({{}, 3}, config) == 3);
  CHECK_ERROR(kConfig, model::value_of({{"c"}, 1}, config));
  CHECK(model::value_of({{"a"}, 1, model::Condition{"c", "x"}}, config) == 2.5);
  CHECK(model::value_of({{"a"}, 1, model::Condition{"c", "y"}}, config) == 1);
  CHECK(model::value_of({{"a"}, 1, model::Condition{"d", "x"}}, config) == 1);
}
