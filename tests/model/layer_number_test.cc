#include "lib/model/graph/layer_number.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>

#include "lib/model/bind.h"
#include "tests/support/throws.h"

using namespace shardtool;

namespace {

mapping::LayerSet marked() {
  return {mapping::LayerSet::Listed{{"kinds"}, {"1"}, {"0"}, {}, {}, {}}};
}

const mapping::LayerSet kMarked = marked();

mapping::ModelConfig config_with(const std::vector<int>& kinds, double cycle) {
  const nlohmann::json config{{"kinds", kinds}, {"cycle", cycle}, {"layers", kinds.size()}};
  return mapping::parse_config(config.dump(), "config.json");
}

}  // namespace

TEST_CASE("the n-th layer of a set is n there, and in turns the layer that came first with its n") {
  CHECK(rc::check("numbers", [] {
    const auto kinds =
        *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 2)));
    const i64 cycle = *rc::gen::inRange<i64>(1, 4);
    const auto config = config_with(kinds, static_cast<double>(cycle));
    std::vector<i64> found;
    for (size_t layer = 0; layer < kinds.size(); ++layer) {
      if (kinds[layer] == 0) continue;
      found.push_back(static_cast<i64>(layer));
      const i64 place = std::ssize(found) - 1;
      const model::LayerNumber plain{kMarked, {}};
      RC_ASSERT(model::value_at(plain, config, found.back()) == place);
      const model::LayerNumber in_turns{kMarked, mapping::Number{{"cycle"}, 1}};
      RC_ASSERT(model::value_at(in_turns, config, found.back()) ==
                found[static_cast<size_t>(place % cycle)]);
    }
  }));
}

TEST_CASE("turns of no layer are an error of the config") {
  const auto error = testing::error_of([] {
    model::value_at({kMarked, mapping::Number{{"cycle"}, 1}}, config_with({1, 1}, 0), 1);
  });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kConfig);
}

TEST_CASE("layers that share a weight read the one that is stored, and each its own adapter") {
  const auto graph = std::make_shared<model::Graph>(model::decode_graph({{"mine", R"({"version": 1,
    "family": "mine", "description": "d", "source": "s", "model_types": ["mine"],
    "sizes": {"n": 4, "layers": "config.layers"},
    "layer_sets": {"marked": {"list": "kinds", "in": [1], "out": [0]}},
    "layer_numbers": {"use": {"among": "marked"},
                      "home": {"among": "marked", "cycle": {"config": "cycle", "default": 1}}},
    "start": [{"op": "embed", "out": "x", "table": "w", "rows": "n", "size": "n"}],
    "blocks": [{"name": "b", "ops": [
      [{"layers": "marked", "parts": [
         {"op": "linear", "in": "x", "out": "y", "weight": "l.<home>.shared", "rows": "n", "columns": "n"},
         {"op": "linear", "in": "y", "out": "x", "weight": "l.<home>.own.<use>", "rows": "n", "columns": "n"}]},
       {"op": "act", "in": "x", "out": "x", "kind": "silu"}]]}],
    "end": [{"op": "act", "in": "x", "out": "logits", "kind": "silu"}]})"}}));
  std::vector<TensorSpec> tensors;
  for (const char* name : {"w", "l.1.shared", "l.2.shared", "l.1.own.0", "l.2.own.1", "l.1.own.2"})
    tensors.push_back({name, Dtype::kF32, {4, 4}});
  const auto bound = bind_model(graph, config_with({0, 1, 1, 0, 1}, 2), tensors);
  const auto read = [&](size_t layer) {
    std::string names;
    for (const model::BoundOp& op : bound.layers[layer + 1].ops)
      names += tensors[op.weights.at(0).front()].name + " ";
    return names;
  };
  CHECK(read(1) == "l.1.shared l.1.own.0 ");
  CHECK(read(2) == "l.2.shared l.2.own.1 ");
  CHECK(read(4) == "l.1.shared l.1.own.2 ");
  CHECK(bound.unread.empty());
}
