#include "lib/model/flow/shared_flows.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <set>

#include "lib/mapping/mapping.h"
#include "lib/mapping/presets.h"
#include "lib/mapping/resolve/resolve.h"
#include "lib/model/flow/token_axes.h"
#include "lib/model/graph/graph_list.h"
#include "lib/model/price.h"
#include "tests/model/published.h"
#include "tests/presets/fixture.h"
#include "tests/support/temp_folder.h"

using namespace shardtool;

namespace {

std::string text(const ops::Exchange& exchange) {
  return fmt::format("{} {} {} {}", to_string(exchange.move), mesh::to_string(exchange.over),
                     exchange.elements, exchange.of_prompt);
}

std::string text(const std::vector<std::vector<plan::Placement>>& values) {
  std::string all;
  for (const auto& value : values) {
    for (const plan::Placement& on : value) all += to_string(on) + " ";
    all += "; ";
  }
  return all;
}

/// Everything that a flow says, but for the tensors of its weights.
std::string text(const model::LayerFlow& flow) {
  std::string all;
  for (const ops::Step& step : flow.steps) {
    all += fmt::format("{} {}\n", fmt::ptr(step.op->op), fmt::ptr(step.op->form));
    for (const ops::ValueMove& move : step.before)
      all += fmt::format("  {} {}\n", move.value, text(move.exchange));
    for (const ops::Exchange& exchange : step.after) all += fmt::format("  {}\n", text(exchange));
    all += fmt::format("  {}-> {}\n  {} -> {}\n", text(step.read), text(step.made), step.widths,
                       step.made_widths);
    all += fmt::format("  {} {} {} {} {} {}\n", step.work.weight_elements, step.work.input_elements,
                       step.work.output_elements, step.work.cache_elements, step.of_prompt,
                       step.reads_prompt);
  }
  return all;
}

std::vector<ops::WeightRead> reads_of(const std::vector<TensorSpec>& tensors) {
  std::vector<ops::WeightRead> reads;
  for (const TensorSpec& tensor : tensors) reads.push_back(ops::read_of(tensor.dtype));
  return reads;
}

/// Compares the shared flow of every layer with one that is walked alone. Returns the number of
/// flows.
size_t compare_all(const model::Model& bound, const std::vector<TensorSpec>& tensors,
                   const mapping::Resolution& resolution) {
  const auto layouts = model::layouts_of(resolution, tensors.size());
  const auto own_tokens = model::token_axes(bound, layouts, resolution.mesh);
  const auto reads = reads_of(tensors);
  model::SharedFlows shared(bound, reads, layouts, resolution.mesh, own_tokens);
  model::Stream alone, together;
  std::set<const model::LayerFlow*> flows;
  for (size_t i = 0; i < bound.layers.size(); ++i) {
    CAPTURE(i);
    const auto expected = model::flow(bound, i, layouts, resolution.mesh, own_tokens, alone);
    const auto found = shared.of(i, together);
    flows.insert(found.get());
    CHECK(text(*found) == text(expected));
    CHECK(together == alone);
  }
  return flows.size();
}

size_t flows_of(const model::Published& model, const std::string& mesh) {
  return compare_all(model.bound, model.tensors, model.on(mesh));
}

}  // namespace

TEST_CASE("a shared flow is the one of its layer alone, in every family on every mesh") {
  size_t layers = 0;
  size_t flows = 0;
  for (const mapping::Fixture& f : mapping::fixtures()) {
    CAPTURE(f.family);
    std::string why_not;
    const auto graph = model::find_graph(f.config, why_not);
    if (graph == nullptr) continue;
    const auto bound = model::bind_model(graph, f.config, f.tensors);
    for (const auto& expected : f.meshes) {
      CAPTURE(expected.mesh);
      mapping::ResolveOptions options;
      options.mesh = mesh::parse_mesh(expected.mesh);
      try {
        flows +=
            compare_all(bound, f.tensors,
                        resolve(mapping::load_preset(f.preset), f.tensors, &f.config, options));
        layers += bound.layers.size();
      } catch (const Error& error) {
        // flow refuses some cuts; price_test has them
        CHECK(error.code() == ErrorCode::kUnsupported);
      }
    }
  }
  CHECK(flows < layers);
}

TEST_CASE("equal layers share a flow: per stage, and apart from those after other values") {
  const auto model = model::llama_3_8b();
  // Table, the first layer after the reduced embedding, the 31 others after a partial sum, head.
  CHECK(flows_of(model, "tp=4") == 4);
  CHECK(flows_of(model, "tp=1") == 3);
  CHECK(flows_of(model, "pp=2,tp=4") == 5);
}

TEST_CASE("a layer whose weights cost another time to read has a price of its own") {
  auto model = model::llama_3_8b();
  const auto resolution = model.on("tp=2");
  constexpr size_t kOther = 7;  // the table is the first
  const auto& ops = model.bound.layers[kOther].ops;
  i64 elements = 0;
  for (const ops::BoundOp& op : ops) {
    if (!std::holds_alternative<ops::Linear>(op.op->kind)) continue;
    TensorSpec& weight = model.tensors[op.weights.front().front()];
    weight.dtype = Dtype::kF8E4M3;
    elements += weight.shape[0] * weight.shape[1];
  }
  const auto weights = model::weights_of(resolution, model.tensors.size());
  const model::ForwardPass pass(model.bound, model.tensors, weights, resolution.mesh);
  const auto layers = pass.prefill_layers({}, nullptr);
  const auto bytes = [&](size_t layer) { return layers[layer].amounts.weight_bytes; };
  CHECK(bytes(kOther - 1) - bytes(kOther) == static_cast<double>(elements / 2));
  CHECK(bytes(kOther + 1) == bytes(kOther - 1));
}

TEST_CASE("layers that take their own part of a value by their number share no flow") {
  const auto graph = std::make_shared<model::Graph>(model::decode_graph({{"mine", R"({"version": 1,
    "family": "mine", "description": "d", "source": "s", "model_types": ["mine"],
    "sizes": {"n": 4, "layers": "config.layers"}, "passed": ["words"],
    "start": [{"op": "embed", "out": "words", "table": "w", "rows": "n", "size": "layers*n"},
              {"op": "act", "in": "words", "out": "x", "kind": "silu"}],
    "blocks": [{"name": "b", "ops": [{"op": "of_layer", "in": "words", "out": "x", "size": "n"}]}],
    "end": [{"op": "act", "in": "x", "out": "logits", "kind": "silu"}]})"}}));
  const auto config = mapping::parse_config(R"({"layers": 4})", "config.json");
  const std::vector<TensorSpec> tensors{{"w", Dtype::kF32, {4, 16}}};
  const auto bound = model::bind_model(graph, config, tensors);
  const test::TempFolder folder;
  const std::string path = folder / "m.json";
  std::ofstream(path) << R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
    "rules": [{"match": "w", "strategy": "columnwise"}]})";
  // A device has the words of two layers.
  CHECK(compare_all(bound, tensors, resolve(mapping::load_mapping(path), tensors, &config, {})) ==
        bound.layers.size());
}
