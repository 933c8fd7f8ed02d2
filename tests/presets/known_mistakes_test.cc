#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/mapping/fixtures.h"
#include "tests/mapping/models.h"
#include "tests/presets/fixture.h"

/// Mistakes of other programs in the layouts of real families: their numbers beside ours.
namespace shardtool::mapping {
namespace {

/// Returns the part of one axis of a family's tensor on every rank.
Held rows(const Fixture& family, const Mapping& mapping, std::string_view mesh,
          std::string_view tensor, size_t axis = 0) {
  const Resolution resolution = resolve(mapping, family.tensors, &family.config, over(mesh));
  return held(*at(resolution, family.tensors, tensor).layout, axis);
}

Held rows(const std::string& family, std::string_view mesh, std::string_view tensor,
          size_t axis = 0) {
  const Fixture& found = fixture(family);
  return rows(found, load_preset(found.preset), mesh, tensor, axis);
}

i64 total(const std::string& family, std::string_view mesh, std::string_view tensor) {
  const Fixture& found = fixture(family);
  const Resolution resolution =
      resolve(load_preset(found.preset), found.tensors, &found.config, over(mesh));
  const layout::Layout& layout = *at(resolution, found.tensors, tensor).layout;
  i64 sum = 0;
  for (const i64 rank : layout.ranks()) sum += (*layout.region(rank))[0].local_size();
  return sum;
}

/// Returns the KV head of a rank if each of `sources` parts is repeated as a whole and then
/// chunked.
i64 tiled_head(i64 sources, i64 kv_heads, i64 ranks, i64 rank) {
  const i64 per_source = kv_heads / sources;
  const i64 ranks_per_source = ranks / sources;
  return rank / ranks_per_source * per_source + rank % ranks_per_source % per_source;
}

TEST_CASE("KV heads are repeated head by head: tiling gives most ranks the head of another") {
  struct Resharding {
    i64 sources, ranks, kv_heads, wrong;
  };
  for (const auto& c : {Resharding{4, 16, 8, 8},
                        {2, 16, 8, 12},
                        {1, 16, 8, 14},
                        {1, 8, 4, 6},
                        {2, 8, 4, 4},
                        {1, 4, 2, 2},
                        {8, 16, 8, 0},
                        {4, 8, 4, 0}}) {
    CAPTURE(c.sources);
    CAPTURE(c.ranks);
    CAPTURE(c.kv_heads);
    const TinyModel model = tiny_llama({.heads = 16, .kv_heads = c.kv_heads, .head_dim = 4});
    const ModelConfig config = config_of(model.config);
    const Resolution resolution =
        resolve(load_preset("llama"), model.tensors, &config, over(fmt::format("tp={}", c.ranks)));
    const Held ours =
        held(*at(resolution, model.tensors, "model.layers.0.self_attn.k_proj.weight").layout, 0);
    i64 wrong = 0;
    for (i64 rank = 0; rank < c.ranks; ++rank) {
      const i64 head = rank * c.kv_heads / c.ranks;
      CHECK(ours[static_cast<size_t>(rank)] == fmt::format("[{}, {})", head * 4, head * 4 + 4));
      wrong += tiled_head(c.sources, c.kv_heads, c.ranks, rank) != head ? 1 : 0;
    }
    CHECK(wrong == c.wrong);
  }
}

TEST_CASE("40 query and 10 KV heads are three unequal parts, as in Phi-4") {
  const TinyModel phi4 = tiny_phi3({.hidden = 80, .heads = 40, .kv_heads = 10, .head_dim = 2});
  const ModelConfig config = config_of(phi4.config);
  const std::string qkv = "model.layers.0.self_attn.qkv_proj.weight";
  const auto on_two = [&](const Mapping& mapping) {
    const Resolution resolution = resolve(mapping, phi4.tensors, &config, over("tp=2"));
    return held(*at(resolution, phi4.tensors, qkv).layout, 0);
  };
  CHECK(on_two(load_preset("phi3")) ==
        Held{"[0, 40) [80, 90) [100, 110)", "[40, 80) [90, 100) [110, 120)"});
  const Mapping thirds = extending("phi3", R"({"version": 1, "extends": ["preset:phi3"],
    "axes": {"third": "tp"}, "unused_rule": "ignore", "rules": [
      {"match": "**.qkv_proj.weight", "dims": ["third + third + third", "embed"]}]})");
  // The first part has query heads 0 to 9; then 20 to 29 instead of keys, and all ten keys instead
  // of values.
  CHECK(on_two(thirds) == Held{"[0, 20) [40, 60) [80, 100)", "[20, 40) [60, 80) [100, 120)"});
}

TEST_CASE("an unknown fused tensor is refused, not taken for the order of BLOOM") {
  const Fixture& mpt = fixture("mpt");
  const std::string qkv = "transformer.blocks.0.attn.Wqkv.weight";
  CHECK(rows("mpt", "tp=2", qkv) ==
        Held{"[0, 24) [48, 72) [96, 120)", "[24, 48) [72, 96) [120, 144)"});
  const Mapping as_bloom = extending("mpt", R"({"version": 1, "extends": ["preset:mpt"],
    "unused_rule": "ignore", "rules": [{"match": "**.Wqkv.weight", "dims": ["heads*3*head_dim", "embed"]}]})");
  // The first device has all queries, half of the keys and no values.
  CHECK(rows(mpt, as_bloom, "tp=2", qkv) == Held{"[0, 72)", "[72, 144)"});
  const Fixture& bloom = fixture("bloom");
  std::vector<TensorSpec> tensors = bloom.tensors;
  tensors.push_back(spec("transformer.h.0.self_attention.fused_qkv.weight", {144, 48}));
  const auto e =
      error_of([&] { return resolve(load_preset("bloom"), tensors, &bloom.config, over("tp=2")); });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kNoRule);
  CHECK(e->tensor_name() == "transformer.h.0.self_attention.fused_qkv.weight");
}

TEST_CASE("the first MLP kernel is cut along its output, the second along its input") {
  const std::string mlp = "backbone.layers.3.mixer.";
  CHECK(rows("nemotron_h", "tp=2", mlp + "up_proj.weight") == Held{"[0, 38)", "[38, 76)"});
  CHECK(rows("nemotron_h", "tp=2", mlp + "up_proj.weight", 1) == Held{"[0, 48)", "[0, 48)"});
  CHECK(rows("nemotron_h", "tp=2", mlp + "down_proj.weight", 1) == Held{"[0, 38)", "[38, 76)"});
  const Mapping along_input = extending("nemotron_h", R"({"version": 1,
    "extends": ["preset:nemotron_h"], "unused_rule": "ignore",
    "rules": [{"match": "**.mixer.up_proj.weight", "strategy": "columnwise"}]})");
  CHECK(rows(fixture("nemotron_h"), along_input, "tp=2", mlp + "up_proj.weight", 1) ==
        Held{"[0, 24)", "[24, 48)"});
}

TEST_CASE("the bias of a row-parallel layer is whole, and added after the reduction") {
  const Fixture& neox = fixture("gpt_neox");
  const std::string bias = "gpt_neox.layers.0.attention.dense.bias";
  CHECK(rows("gpt_neox", "tp=2", bias) == Held{"[0, 48)", "[0, 48)"});
  CHECK(neox.after_reduction.contains(bias));
  const auto with_bias_rule = [](const std::string& strategy) {
    return extending("gpt_neox", R"({"version": 1, "extends": ["preset:gpt_neox"],
      "unused_rule": "ignore", "rules": [{"match": "**.dense.bias", "strategy": )" +
                                     strategy + "}]}");
  };
  CHECK(rows(neox, with_bias_rule("\"rowwise\""), "tp=2", bias) == Held{"[0, 24)", "[24, 48)"});
  const Mapping second_axis = with_bias_rule(R"({"type": "axiswise", "axis": 1})");
  CHECK_ERROR(kShapeMismatch, rows(neox, second_axis, "tp=2", bias));
}

TEST_CASE("the bias of a fused vision tensor has the sections of its weight") {
  const std::string qkv = "visual.blocks.0.attn.qkv.";
  for (const std::string family : {"qwen2_vl", "qwen2_5_vl"}) {
    CAPTURE(family);
    const Held sections = {"[0, 12) [24, 36) [48, 60)", "[12, 24) [36, 48) [60, 72)"};
    CHECK(rows(family, "tp=2", qkv + "weight") == sections);
    CHECK(rows(family, "tp=2", qkv + "bias") == sections);
    const Mapping one_range = extending(family, fmt::format(R"({{"version": 1,
      "extends": ["preset:{}"], "unused_rule": "ignore",
      "rules": [{{"match": "**.attn.qkv.bias", "strategy": "rowwise"}}]}})",
                                                            family));
    CHECK(rows(fixture(family), one_range, "tp=2", qkv + "bias") == Held{"[0, 36)", "[36, 72)"});
  }
}

TEST_CASE("no row is left over where the devices do not divide the rows") {
  const std::string up = "model.layers.0.mlp.up_proj.weight";
  CHECK(rows("mistral", "tp=8", up).back() == "[67, 76)");
  CHECK(total("mistral", "tp=8", up) == 76);
  CHECK(total("mistral", "tp=8", up) - 8 * (76 / 8) == 4);  // rows that equal parts would lose
}

TEST_CASE("query rows need not be as many as the hidden size") {
  const std::string q = "model.layers.0.self_attn.q_proj.weight";
  CHECK(rows("qwen3", "tp=2", q) == Held{"[0, 16)", "[16, 32)"});  // hidden size 48
  const Mapping by_hidden = extending("qwen3", R"({"version": 1, "extends": ["preset:qwen3"],
    "unused_rule": "ignore",
    "axes": {"head_dim": {"size": "config.hidden_size / config.num_attention_heads"}}})");
  const auto e = error_of([&] { return rows(fixture("qwen3"), by_hidden, "tp=2", q); });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kShapeMismatch);
}

TEST_CASE("shards with equal bytes are replicas only where the layout says so") {
  // A norm of ones is cut by heads into 8 equal shards, each an eighth of the tensor.
  CHECK(rows("mamba2", "tp=8", "backbone.layers.0.mixer.norm.weight")[7] == "[42, 48)");
  CHECK(total("mamba2", "tp=8", "backbone.layers.0.mixer.norm.weight") == 48);
  CHECK(total("mamba2", "tp=8", "backbone.norm_f.weight") == 8 * 24);
}

TEST_CASE("a stack of experts in the other orientation is refused") {
  // The same name has shape [experts, 2 * ffn, hidden] in one family and [experts, hidden, 2 * ffn]
  // in another.
  Fixture qwen = fixture("qwen3_moe_stacked");
  for (TensorSpec& tensor : qwen.tensors) {
    if (tensor.name == "model.layers.1.mlp.experts.gate_up_proj") {
      CHECK(tensor.shape == Shape{6, 40, 48});
      tensor.shape = {6, 48, 40};
    }
  }
  const auto e = error_of(
      [&] { return resolve(load_preset("qwen3_moe"), qwen.tensors, &qwen.config, over("tp=2")); });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kShapeMismatch);
  CHECK(e->tensor_name() == "model.layers.1.mlp.experts.gate_up_proj");
}

TEST_CASE("transposed stacks of experts are cut along the features that they are published in") {
  const std::string experts = "model.language_model.layers.1.mlp.experts.";
  CHECK(rows("qwen3_vl_moe", "tp=2", experts + "gate_up_proj", 2) ==
        Held{"[0, 10) [20, 30)", "[10, 20) [30, 40)"});
  CHECK(rows("qwen3_vl_moe", "tp=2", experts + "down_proj", 1) == Held{"[0, 10)", "[10, 20)"});
  // Transformers 5 saves the same model with a config that lacks this.
  Fixture saved = fixture("qwen3_vl_moe");
  for (TensorSpec& tensor : saved.tensors) {
    if (tensor.name == experts + "gate_up_proj") tensor.shape = {6, 40, 48};
    if (tensor.name == experts + "down_proj") tensor.shape = {6, 48, 20};
  }
  CHECK_ERROR(kShapeMismatch,
              resolve(load_preset("qwen3_vl_moe"), saved.tensors, &saved.config, over("tp=2")));
}

TEST_CASE("the rows of an expert are all there on every number of devices") {
  const std::string w1 = "model.layers.0.block_sparse_moe.experts.0.w1.weight";
  CHECK(rows("mixtral", "tp=4", w1) == Held{"[0, 19)", "[19, 38)", "[38, 57)", "[57, 76)"});
  CHECK(total("mixtral", "tp=4", w1) == 76);
  const Held eight = rows("mixtral", "tp=8", w1);
  // Four devices that read four files of an 8-way split get only half of the tensor.
  CHECK(eight[3] == "[30, 40)");
  CHECK(total("mixtral", "tp=8", w1) == 76);
}

TEST_CASE("integer and boolean tensors are placed like any other") {
  const Fixture& bert = fixture("bert");
  std::vector<TensorSpec> tensors = bert.tensors;
  tensors.push_back(spec("bert.embeddings.position_ids", {1, 64}, Dtype::kI64));
  const Resolution with_ids = resolve(load_preset("bert"), tensors, &bert.config, over("tp=2"));
  CHECK(held(*at(with_ids, tensors, "bert.embeddings.position_ids").layout, 1)[1] == "[0, 64)");
  const Fixture& gpt2 = fixture("gpt2");
  tensors = gpt2.tensors;
  tensors.push_back(spec("transformer.h.0.attn.bias", {1, 1, 64, 64}, Dtype::kBool));
  const Resolution with_mask = resolve(load_preset("gpt2"), tensors, &gpt2.config, over("tp=2"));
  CHECK(held(*at(with_mask, tensors, "transformer.h.0.attn.bias").layout, 2)[1] == "[0, 64)");
}

TEST_CASE("a layer without a window has its own KV heads: cut as those of others it is mixed up") {
  const std::string keys = "model.layers.1.self_attn.k_proj.weight";
  CHECK(rows("gemma4_text", "tp=4", keys) == Held{"[0, 6)", "[0, 6)", "[6, 12)", "[6, 12)"});
  CHECK(rows("gemma4_text", "tp=2", "model.layers.0.self_attn.k_proj.weight") ==
        Held{"[0, 8)", "[8, 16)"});
  const Mapping as_others = extending("gemma4", R"({"version": 1, "unused_rule": "ignore",
    "extends": ["preset:gemma4"],
    "overrides": [{"match": "model.layers.<layer>.self_attn.k_proj.weight",
                   "dims": ["kv_heads*3", null], "index": {"layer": "layers"},
                   "where": {"layer": {"list": "layer_types", "in": ["full_attention"], "out": ["sliding_attention"]}}}]})");
  CHECK(rows(fixture("gemma4_text"), as_others, "tp=4", keys) ==
        Held{"[0, 3)", "[3, 6)", "[6, 9)", "[9, 12)"});
}

TEST_CASE("heads of a kind of layers are read as config.json has them, published or saved anew") {
  const Fixture& family = fixture("gemma4_text");
  nlohmann::json published = nlohmann::json::parse(family.config_text);
  CHECK(published.erase("per_layer_config") == 1);
  published["global_head_dim"] = 6;
  published["num_global_key_value_heads"] = 2;
  for (const bool is_nested : {false, true}) {
    const ModelConfig config =
        config_of((is_nested ? nlohmann::json{{"text_config", published}} : published).dump());
    const Mapping preset = load_preset("gemma4");
    const Resolution as_saved = resolve(preset, family.tensors, &family.config, over("tp=4"));
    const Resolution as_published = resolve(preset, family.tensors, &config, over("tp=4"));
    REQUIRE(as_saved.tensors.size() == as_published.tensors.size());
    for (size_t i = 0; i < as_saved.tensors.size(); ++i) {
      CHECK(as_saved.tensors[i].by->rule == as_published.tensors[i].by->rule);
      CHECK(held(*as_saved.tensors[i].layout, 0) == held(*as_published.tensors[i].layout, 0));
    }
  }
}

}  // namespace
}  // namespace shardtool::mapping
