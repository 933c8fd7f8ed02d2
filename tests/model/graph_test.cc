#include "lib/model/graph/graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "lib/model/bind.h"
#include "lib/model/graph/graph_list.h"
#include "lib/ops/body.h"
#include "tests/support/throws.h"

using namespace shardtool;
using kernels::ActivationKind;
using testing::error_of;

namespace {

std::string refusal(std::string_view text) {
  const auto error = error_of([&] { return model::decode_graph({{"mine", text}}); });
  REQUIRE(error);
  CHECK((error->code() == ErrorCode::kMappingSchema || error->code() == ErrorCode::kMappingSyntax));
  return error->message();
}

/// A graph with one op after the embedding.
std::string graph_with(std::string_view op) {
  return std::string(R"({"version": 1, "family": "mine", "description": "d", "source": "s",
    "model_types": ["mine"], "sizes": {"n": 4, "layers": 1},
    "start": [{"op": "embed", "out": "x", "table": "w", "rows": "n", "size": "n"}],
    "blocks": [{"name": "b", "ops": [)") +
         std::string(op) + R"(]}],
    "end": [{"op": "act", "in": "x", "out": "y", "kind": "silu"}]})";
}

/// The activations of the ops that make this value, in all layers of the config's graph.
std::set<ActivationKind> activations_of(const std::string& text, const std::string& out) {
  const auto config = mapping::parse_config(text, "config.json");
  std::string why_not;
  const auto graph = model::find_graph(config, why_not);
  REQUIRE_MESSAGE(graph != nullptr, why_not);
  std::set<ActivationKind> found;
  const auto add = [&](const model::Op& op) {
    if (op.out != std::vector{out}) return;
    if (const auto* act = std::get_if<ops::Activation>(&op.kind))
      found.insert(ops::activation_of(act->kind, config));
    if (const auto* experts = std::get_if<ops::Experts>(&op.kind))
      found.insert(ops::activation_of(experts->activation, config));
  };
  for (const model::Stack& stack : graph->stacks) {
    for (const model::Block& block : stack.blocks) {
      for (const model::Alternatives& stretch : block.stretches) {
        for (const model::Way& way : stretch) std::ranges::for_each(way.ops, add);
      }
    }
  }
  return found;
}

std::string why_no_graph(const std::string& config) {
  std::string why_not;
  CHECK(model::find_graph(mapping::parse_config(config, "config.json"), why_not) == nullptr);
  return why_not;
}

}  // namespace

TEST_CASE("every built-in graph decodes and says what it was read from") {
  const auto names = model::families();
  CHECK(names.size() >= 147);
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (const std::string& name : names) {
    CAPTURE(name);
    const model::Graph graph = model::load_graph(name);
    CHECK(graph.family == name);
    CHECK_FALSE(graph.source.empty());
    CHECK_FALSE(graph.stacks[0].blocks.empty());
    CHECK_FALSE(graph.model_types.empty());
  }
}

TEST_CASE("a family without a graph is named, not guessed") {
  CHECK(why_no_graph(R"({"model_type": "unheard"})") ==
        "no graph is built in for the model type 'unheard'");
  CHECK(why_no_graph("{}") == "config.json names no model_type");
  CHECK(why_no_graph(R"({"model_type": "gemma", "use_bidirectional_attention": true})") ==
        "config.json says use_bidirectional_attention = true, and the graph of gemma computes null "
        "or "
        "false");
  CHECK_ERROR(kUsage, model::graph_text("lama"));
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
  for (const char* config :
       {R"({"model_type": "gpt_oss", "swiglu_limit": 6.5})",
        R"({"model_type": "gpt_oss", "swiglu_alpha": 1})",
        R"({"model_type": "gemma", "hidden_act": "relu"})",
        R"({"model_type": "gemma2", "use_bidirectional_attention": true})",
        R"({"model_type": "deepseek_v2", "norm_topk_prob": true})",
        R"({"model_type": "deepseek_v3", "rope_interleave": false})",
        R"({"model_type": "mpt", "attn_config": {"alibi": false}})",
        R"({"model_type": "roberta", "pad_token_id": 0})",
        R"({"model_type": "olmoe", "clip_qkv": 8.0})",
        R"({"model_type": "phimoe", "num_experts_per_tok": 4})",
        R"({"model_type": "chatglm"})",
        R"({"model_type": "chatglm", "multi_query_attention": true,
                                 "post_layer_norm": false})",
        R"({"model_type": "zamba2", "use_long_context": true})",
        R"({"model_type": "zamba2", "tie_word_embeddings": false})",
        R"({"model_type": "gemma3n_text", "altup_num_inputs": 3})",
        R"({"model_type": "apertus", "hidden_act": "silu"})",
        R"({"model_type": "gemma3_text", "attn_logit_softcapping": 5.0})",
        R"({"model_type": "falcon_h1", "rope_parameters": {"partial_rotary_factor": 0.5}})",
        R"({"model_type": "bart", "architectures": ["BartForSequenceClassification"]})",
        R"({"model_type": "internvl", "text_config": {"model_type": "gpt_oss"}})",
        R"({"model_type": "dbrx", "ffn_config":
                                 {"moe_normalize_expert_weights": null}})"}) {
    CAPTURE(config);
    CHECK(why_no_graph(config).find(", and the graph of ") != std::string::npos);
  }
  std::string none;
  CHECK(model::find_graph(mapping::parse_config(R"({"model_type": "dbrx"})", "config.json"), none));
  for (const char* limit : {"7", "7.0", "null"}) {
    CAPTURE(limit);
    const std::string config = R"({"model_type": "gpt_oss", "swiglu_limit": )";
    std::string why_not;
    CHECK(model::find_graph(mapping::parse_config(config + limit + "}", "config.json"), why_not));
  }
}

TEST_CASE("an activation that the code names is SiLU, whatever hidden_act says") {
  for (const char* config : {R"({"model_type": "qwen3_next", "hidden_act": "relu"})",
                             R"({"model_type": "qwen3_5_text", "hidden_act": "relu"})",
                             R"({"model_type": "qwen3_5_moe_text", "hidden_act": "relu"})"}) {
    CAPTURE(config);
    CHECK(activations_of(config, "lz_open") == std::set{ActivationKind::kSilu});
    CHECK(activations_of(config, "activated") == std::set{ActivationKind::kRelu});
  }
  const char* config = R"({"model_type": "hy_v4", "hidden_act": "relu"})";
  CHECK(activations_of(config, "gated") == std::set{ActivationKind::kRelu});
  CHECK(activations_of(config, "fed") == std::set{ActivationKind::kSilu});
}

TEST_CASE("a config's part for the language model says what its graph requires") {
  std::string why_not;
  const auto found = [&](const std::string& text) {
    return model::find_graph(mapping::parse_config(text, "config.json"), why_not) != nullptr;
  };
  CHECK(found(R"({"model_type": "gemma3", "text_config": {"hidden_size": 8}})"));
  CHECK(found(R"({"model_type": "gemma3", "text_config": "none"})"));
  CHECK_FALSE(
      found(R"({"model_type": "gemma3", "text_config": {"use_bidirectional_attention": true}})"));
  CHECK_FALSE(found(R"({"model_type": "gemma3_text", "use_bidirectional_attention": true})"));
}

TEST_CASE("ways of a stretch name layers and parts that are there") {
  const auto with_way = [](const std::string& way) {
    return graph_with("[" + way + R"(, {"op": "act", "in": "x", "out": "x", "kind": "silu"}])");
  };
  const std::string act = R"("parts": [{"op": "act", "in": "x", "out": "x", "kind": "relu"}])";
  const auto graph = model::decode_graph({{"mine", with_way(R"({"requires": {"a": [null, 1]},
    "layers": {"list": "l", "in": [1], "out": [0]}, )" + act +
                                                            "}")}});
  const model::Way& way = graph.stacks[0].blocks[0].stretches[0][0];
  CHECK(way.ops.size() == 1);
  REQUIRE(way.layers);
  CHECK(std::get<mapping::LayerSet::Listed>(way.layers->kind).in == std::vector<std::string>{"1"});
  CHECK(way.requires_config == model::Requirements{{"a", {"null", "1"}}});
  CHECK(refusal(with_way(R"({"layers": "local", )" + act + "}"))
            .ends_with("the name of one of the \"layer_sets\""));
  CHECK(refusal(with_way(R"({"layers": {"list": "l"}, )" + act + "}")).find("'in'") !=
        std::string::npos);
  CHECK(refusal(with_way(R"({"parts": ["nothing"]})"))
            .ends_with("an op or the name of one of the \"parts\""));
}

TEST_CASE("an op with an unknown kind, key, value or dimension is refused with its place") {
  CHECK(model::decode_graph({{"mine", graph_with(R"({"op": "act", "in": "x", "out": "x",
    "kind": "silu"})")}})
            .stacks[0]
            .blocks.size() == 1);
  CHECK(
      refusal(graph_with(R"({"op": "fft", "in": "x", "out": "x"})")).ends_with("cannot be 'fft'"));
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
  CHECK(refusal(graph_with(R"({"op": "attention", "in": ["x", "x", "x"], "out": "x", "heads": "n",
    "kv_heads": "n", "key_dim": "n", "value_dim": "n", "mask": "causal",
    "index": {"heads": "n", "dim": "n", "top_k": "n"}})"))
            .ends_with("three of its index, two of its entries and those of its buckets"));
  CHECK(refusal(graph_with(R"({"op": "pool", "in": "x", "out": "x", "bias": "b", "size": "n",
    "width": "n", "taps": "n"})"))
            .ends_with("a value, and its scores"));
  CHECK(refusal(graph_with(R"({"op": "router", "in": "x", "out": "x", "kind": "topk_sigmoid",
    "weight": "w", "table": "t", "experts": "n", "top_k": "n", "columns": "n",
    "renormalise": "true"})"))
            .ends_with("\"words\" where it has a \"table\", which is there for a bias"));
  CHECK(refusal(graph_with(R"({"op": "linear", "in": "x", "out": "x", "weight": "w", "rows": "n",
    "columns": "n", "groups": "n", "kernel": "in_out"})"))
            .ends_with("kernel is out_in where it has groups"));
  CHECK(refusal(graph_with(R"({"op": "scale", "in": "x", "out": "x", "by": 2,
    "sections": ["n", "n"]})"))
            .ends_with("\"size\" where it has sections"));
  CHECK(refusal(graph_with(R"({"op": "join", "in": ["x", "x"], "out": "x", "order": "concat",
    "sections": ["n", "n"], "heads": "n"})"))
            .find("\"heads\"") != std::string::npos);
  CHECK(refusal(graph_with(R"({"op": "recurrence", "in": ["x", "x", "x"], "out": "x",
    "rule": "delta", "heads": "n", "key_heads": "n", "key_dim": "n", "value_dim": "n"})"))
            .ends_with("queries, keys, values and decays, and with gates or none"));
  CHECK(refusal(graph_with(R"({"op": "recurrence", "in": ["x", "x", "x", "x", "x"], "out": "x",
    "rule": "gated", "heads": "n", "key_heads": "n", "key_dim": "n", "value_dim": "n"})"))
            .find("rule") != std::string::npos);
  CHECK(refusal(graph_with(R"({"op": "normalise", "in": "x", "out": "x", "weight": "w",
    "features": "n", "size": "n", "eps": 1e-5})"))
            .ends_with("the sums of its squares"));
  CHECK(refusal(graph_with(R"({"op": "resize", "in": ["x", "x"], "out": "x", "size": "n"})"))
            .ends_with("the sum of its squares, and of another's"));
  CHECK(refusal(graph_with(R"({"op": "cutoff", "in": ["x", "x"], "out": "x", "size": "n",
    "shares": "s"})"))
            .ends_with("its sum, and that of its squares"));
  CHECK(refusal(graph_with(R"({"op": "mix", "in": "x", "out": "x", "size": "n", "from": "n",
    "to": "n"})"))
            .ends_with("streams side by side, and their factors"));
  CHECK(refusal(graph_with(R"({"op": "shift", "in": "x", "out": "x"})"))
            .ends_with("an op with \"by\" or \"bias\""));
  CHECK(refusal(graph_with(R"({"op": "shift", "in": "x", "out": "x", "bias": "b"})"))
            .ends_with("\"size\" where there is a \"bias\", and only there"));
  CHECK(refusal(graph_with(R"({"op": "norm", "in": "x", "out": "x", "kind": "rms", "size": "n",
    "weight": "norms.<head>.weight", "eps": 1e-5, "per_head": true})"))
            .ends_with("where a name has <head>"));
  refusal("{");
}

TEST_CASE("numbers come from the config, else from the graph") {
  const auto config = mapping::parse_config(
      R"({"a": 2.5, "b": null, "c": "x", "d": [0, Infinity]})", "config.json");
  CHECK(mapping::value_of({{"d[1]"}, 1}, config) == std::numeric_limits<double>::infinity());
  CHECK(mapping::value_of({{"a"}, 1}, config) == 2.5);
  CHECK(mapping::value_of({{"b"}, 1}, config) == 1);
  CHECK(mapping::value_of({{"b", "a"}, 1}, config) == 2.5);
  CHECK(mapping::value_of({{}, 3}, config) == 3);
  CHECK_ERROR(kConfig, mapping::value_of({{"c"}, 1}, config));
  CHECK(mapping::value_of({{"a"}, 1, mapping::Condition{"c", "x"}}, config) == 2.5);
  CHECK(mapping::value_of({{"a"}, 1, mapping::Condition{"c", "y"}}, config) == 1);
  CHECK(mapping::value_of({{"a"}, 1, mapping::Condition{"d", "x"}}, config) == 1);
}
