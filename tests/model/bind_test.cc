#include "lib/model/bind.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/model/graph/graph_list.h"
#include "lib/model/live_ops.h"
#include "tests/presets/fixture.h"
#include "tests/support/throws.h"

using namespace shardtool;
using mapping::Fixture;
using mapping::fixture;
using testing::error_of;

namespace {

/// Binds the fixture's model to the graph of its config.
model::Model bound(const Fixture& f) {
  std::string why_not;
  auto graph = model::find_graph(f.config, why_not);
  REQUIRE_MESSAGE(graph != nullptr, why_not);
  return model::bind_model(std::move(graph), f.config, f.tensors);
}

std::string blocks_of(const model::Model& bound) {
  std::string names;
  for (const model::Layer& layer : bound.layers) names += layer.block + " ";
  return names;
}

}  // namespace

TEST_CASE("every graph reads every tensor of its family, in the shape that the library gives it") {
  // Families without a class in the library; golden_test.cc tests them.
  std::vector<std::string> families{"chatglm", "internlm2"};
  for (const Fixture& f : mapping::fixtures()) {
    std::string why_not;
    auto graph = model::find_graph(f.config, why_not);
    if (graph == nullptr) continue;
    CAPTURE(f.family);
    families.push_back(graph->family);
    const auto unread = model::bind_model(std::move(graph), f.config, f.tensors).unread;
    // DeepSeek V3 and GLM-4.5 are published with extra layers for multi-token prediction.
    const std::string behind =
        "model.layers." + std::to_string(f.config.size("num_hidden_layers").value_or(0)) + ".";
    const auto first = std::find_if(unread.begin(), unread.end(), [&](const std::string& name) {
      return !f.family.ends_with("_published") || !name.starts_with(behind);
    });
    CHECK((first == unread.end() ? "" : *first) == "");
  }
  std::sort(families.begin(), families.end());
  families.erase(std::unique(families.begin(), families.end()), families.end());
  CHECK(families == model::families());
}

TEST_CASE("the result depends on every op of every family") {
  for (const Fixture& f : mapping::fixtures()) {
    std::string why_not;
    auto graph = model::find_graph(f.config, why_not);
    if (graph == nullptr) continue;
    CAPTURE(f.family);
    const model::Model all = model::bind_model(std::move(graph), f.config, f.tensors);
    model::Model live = all;
    model::remove_dead_ops(live);
    for (size_t layer = 0; layer < all.layers.size(); ++layer) {
      CAPTURE(layer);
      CHECK(live.layers[layer].ops.size() == all.layers[layer].ops.size());
      CHECK(live.layers[layer].passes == all.layers[layer].passes);
    }
  }
}

TEST_CASE("a layer's block is the first whose tensors are there") {
  CHECK(blocks_of(bound(fixture("llama"))) == "start decoder decoder end ");
  CHECK(blocks_of(bound(fixture("deepseek_v2"))) == "start dense sparse end ");
  CHECK(blocks_of(bound(fixture("qwen3_moe"))) == "start dense sparse end ");
}

TEST_CASE(
    "projections of layers that read the keys of earlier ones may be stored, and are not read") {
  const Fixture& f = fixture("gemma3n_text");
  std::vector<TensorSpec> tensors = f.tensors;
  for (const char* layer : {"2", "3"}) {
    for (const char* part : {"k_proj", "v_proj", "k_norm"}) {
      const std::string name = std::string(layer) + ".self_attn." + part + ".weight";
      tensors.push_back({"model.layers." + name, Dtype::kF32, {1}});
    }
  }
  std::string why_not;
  const auto all = model::bind_model(model::find_graph(f.config, why_not), f.config, tensors);
  CHECK(all.unread.empty());
  for (const model::Layer& layer : all.layers) {
    for (const model::BoundOp& op : layer.ops) {
      for (const model::BoundWeight& weight : op.weights) {
        CHECK(std::all_of(weight.begin(), weight.end(),
                          [&](size_t tensor) { return tensor < f.tensors.size(); }));
      }
    }
  }
}

TEST_CASE("experts are bound one by one, or all at once") {
  const auto experts_of = [](const model::Model& bound) -> const model::BoundOp& {
    const auto& ops = bound.layers[1].ops;
    return *std::find_if(ops.begin(), ops.end(), [](const auto& op) { return op.form != nullptr; });
  };
  const auto separate = bound(fixture("mixtral"));
  CHECK(experts_of(separate).form->per_expert);
  CHECK(experts_of(separate).weights.size() == 3);
  CHECK(experts_of(separate).weights[0].size() == 6);
  const auto stacked = bound(fixture("mixtral_stacked"));
  CHECK(experts_of(stacked).form->order == model::Experts::Order::kStacked);
  CHECK(experts_of(stacked).weights[0].size() == 1);
}

TEST_CASE("a tied head reads the embedding") {
  const auto& f = fixture("gpt2");
  const auto tied = bound(f);
  CHECK(tied.layers.back().ops.back().weights[0] == tied.layers.front().ops.front().weights[0]);
}

TEST_CASE("a head that is not tied is read with the bias of its own name, and alone") {
  for (const auto& [family, own] :
       {std::pair{"bert", "cls.predictions.decoder"}, std::pair{"roberta", "lm_head.decoder"},
        std::pair{"megatron_bert", "cls.predictions.decoder"},
        std::pair{"deberta_v2", "cls.predictions.decoder"}}) {
    CAPTURE(family);
    const Fixture& f = fixture(family);
    std::vector<TensorSpec> tensors = f.tensors;
    const auto of_words = std::ranges::find_if(f.tensors, [](const TensorSpec& tensor) {
      return tensor.name.ends_with("embeddings.word_embeddings.weight");
    });
    REQUIRE(of_words != f.tensors.end());
    const auto is_own = [&](const TensorSpec& tensor) { return tensor.name.starts_with(own); };
    std::erase_if(tensors, is_own);
    tensors.push_back({std::string(own) + ".weight", Dtype::kF32, of_words->shape});
    tensors.push_back({std::string(own) + ".bias", Dtype::kF32, {of_words->shape[0]}});
    std::string why_not;
    const auto all = model::bind_model(model::find_graph(f.config, why_not), f.config, tensors);
    const auto& weights = all.layers.back().ops.back().weights;
    REQUIRE(weights.size() == 2);
    CHECK(weights[0] == model::BoundWeight{tensors.size() - 2});
    CHECK(weights[1] == model::BoundWeight{tensors.size() - 1});
  }
}

TEST_CASE("a bias of attention's output is read where it is stored") {
  const Fixture& f = fixture("hy_v4");
  std::vector<TensorSpec> tensors = f.tensors;
  const auto hidden = f.config.size("hidden_size");
  REQUIRE(hidden);
  const auto is_there = [](const TensorSpec& tensor) {
    return tensor.name.ends_with("self_attn.o_proj.bias");
  };
  std::erase_if(tensors, is_there);
  tensors.push_back({"model.layers.0.self_attn.o_proj.bias", Dtype::kF32, {*hidden}});
  std::string why_not;
  CHECK(model::bind_model(model::find_graph(f.config, why_not), f.config, tensors).unread.empty());
}

TEST_CASE("a missing tensor and one of another shape are errors that name it") {
  const Fixture& f = fixture("llama");
  auto tensors = f.tensors;
  const auto up = std::find_if(tensors.begin(), tensors.end(), [](const TensorSpec& t) {
    return t.name == "model.layers.1.mlp.up_proj.weight";
  });
  REQUIRE(up != tensors.end());
  const auto bind_it = [&] {
    std::string why_not;
    return model::bind_model(model::find_graph(f.config, why_not), f.config, tensors);
  };
  up->shape = {76, 47};
  auto error = error_of(bind_it);
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kShapeMismatch);
  CHECK(error->tensor_name() == "model.layers.1.mlp.up_proj.weight");
  up->name = "model.layers.1.mlp.up_proj.qweight";
  error = error_of(bind_it);
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUnsupported);
  CHECK(error->tensor_name().ends_with("layers.1.mlp.up_proj.weight"));
}

TEST_CASE("a missing tensor of one expert is that expert's") {
  const Fixture& f = fixture("mixtral");
  const std::string lost = "model.layers.1.block_sparse_moe.experts.2.w3.weight";
  auto tensors = f.tensors;
  REQUIRE(std::erase_if(tensors, [&](const auto& tensor) { return tensor.name == lost; }) == 1);
  std::string why_not;
  const auto graph = model::find_graph(f.config, why_not);
  const auto error = error_of([&] { model::bind_model(graph, f.config, tensors); });
  REQUIRE(error);
  CHECK(error->tensor_name() == lost);
  model::MissingTensors missing;
  model::bind_model(graph, f.config, tensors, model::Misfits::kLeaveOut, &missing);
  CHECK(missing.count == 1);
  CHECK(missing.first == lost);
  CHECK(missing.names.contains(lost));
}

TEST_CASE("a layer that a variant is written for and that lost its tensor has no other variant") {
  const Fixture& f = fixture("modernbert");
  const std::string lost = "model.layers.1.attn_norm.weight";
  auto tensors = f.tensors;
  REQUIRE(std::erase_if(tensors, [&](const auto& tensor) { return tensor.name == lost; }) == 1);
  std::string why_not;
  const auto graph = model::find_graph(f.config, why_not);
  const auto error = error_of([&] { model::bind_model(graph, f.config, tensors); });
  REQUIRE(error);
  CHECK(error->tensor_name() == lost);
}

TEST_CASE("a tensor that no op reads is told, and buffers are not") {
  const Fixture& f = fixture("llama");
  auto tensors = f.tensors;
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", Dtype::kF32, {2}});
  tensors.push_back({"model.layers.0.extra.weight", Dtype::kF32, {2}});
  std::string why_not;
  const auto found = model::bind_model(model::find_graph(f.config, why_not), f.config, tensors);
  CHECK(found.unread == std::vector<std::string>{"model.layers.0.extra.weight"});
}

TEST_CASE("a number of experts that no checkpoint has is refused at once") {
  const Fixture& f = fixture("mixtral");
  auto text = nlohmann::json::parse(f.config_text);
  text["num_local_experts"] = 9'000'000'000'000;
  const auto config = mapping::parse_config(text.dump(), "config.json");
  std::string why_not;
  const auto graph = model::find_graph(config, why_not);
  const auto error =
      error_of([&] { model::bind_model(graph, config, f.tensors, model::Misfits::kLeaveOut); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kConfig);
  CHECK(error->message().find("experts") != std::string::npos);
}
