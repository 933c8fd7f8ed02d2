#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>

#include "lib/model/bind.h"
#include "tests/support/throws.h"

using namespace shardtool;

namespace {

/// A layer reads "k", makes it, does both in this order, or neither.
const std::vector<std::string> kKinds{"read", "make", "both", "none"};

bool reads(const std::string& kind) {
  return kind == "read" || kind == "both";
}
bool makes(const std::string& kind) {
  return kind == "make" || kind == "both";
}

model::Model bound(const std::vector<std::string>& kinds) {
  static const auto graph =
      std::make_shared<model::Graph>(model::decode_graph({{"mine", R"({"version": 1,
    "family": "mine", "description": "d", "source": "s", "model_types": ["mine"],
    "sizes": {"n": 4, "layers": "config.layers"}, "passed": ["k", "unused"],
    "layer_sets": {"reading": {"list": "kinds", "in": ["read", "both"], "out": ["make", "none"]},
                   "making": {"list": "kinds", "in": ["make", "both"], "out": ["read", "none"]}},
    "start": [{"op": "embed", "out": "x", "table": "w", "rows": "n", "size": "n"}],
    "blocks": [{"name": "b", "ops": [
      [{"layers": "reading", "parts": [{"op": "add", "in": ["x", "k"], "out": "y"}]},
       {"op": "act", "in": "x", "out": "y", "kind": "silu"}],
      [{"layers": "making", "parts": [{"op": "act", "in": "y", "out": "k", "kind": "silu"}]},
       {"op": "act", "in": "y", "out": "unused", "kind": "silu"}],
      {"op": "act", "in": "y", "out": "x", "kind": "silu"}]}],
    "end": [{"op": "act", "in": "x", "out": "logits", "kind": "silu"}]})"}}));
  const nlohmann::json config{{"layers", kinds.size()}, {"kinds", kinds}};
  const std::vector<TensorSpec> tensors{{"w", Dtype::kF32, {4, 4}}};
  return bind_model(graph, mapping::parse_config(config.dump(), "config.json"), tensors);
}

/// True if the first of these layers that uses "k" reads it.
bool is_read_first(std::span<const std::string> kinds) {
  for (const std::string& kind : kinds) {
    if (reads(kind) || makes(kind)) return reads(kind);
  }
  return false;
}

}  // namespace

TEST_CASE("a layer passes what a later one reads before another makes it again") {
  CHECK(rc::check("passes", [] {
    const auto kinds = *rc::gen::nonEmpty(
        rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kKinds)));
    if (is_read_first(kinds)) {
      RC_ASSERT_THROWS_AS(bound(kinds), Error);
      return;
    }
    const auto model = bound(kinds);
    RC_ASSERT(model.layers.front().passes == std::vector<std::string>{"x"});
    for (size_t i = 0; i < kinds.size(); ++i) {
      const bool passes_k = is_read_first(std::span(kinds).subspan(i + 1));
      const auto expected =
          passes_k ? std::vector<std::string>{"k", "x"} : std::vector<std::string>{"x"};
      RC_ASSERT(model.layers[i + 1].passes == expected);
    }
    RC_ASSERT(model.layers.back().passes == std::vector<std::string>{"logits"});
  }));
}

TEST_CASE("a value that a layer reads and none before it made is named") {
  const auto error = testing::error_of([] { bound({"none", "read"}); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kMappingSchema);
  CHECK(error->message() ==
        "the graph of mine reads 'k' in a layer, and none before it makes that");
}
