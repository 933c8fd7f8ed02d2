#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lib/mapping/presets.h"
#include "tests/mapping/fixtures.h"
#include "tests/mapping/models.h"

/// Placement of models on common meshes, by the presets.
namespace shardtool::mapping {
namespace {

using Ranks = std::vector<i64>;

/// A model resolved over a mesh by its preset and, optionally, axes or rules that precede it.
class OnMesh {
 public:
  OnMesh(std::string_view preset, const TinyModel& model, std::string_view mesh,
         const std::string& axes = "")
      : tensors_(model.tensors),
        config_(config_of(model.config)),
        resolution_(
            resolve(extending(preset, document(axes, preset)), tensors_, &config_, over(mesh))) {}

  const layout::Layout& layout(std::string_view tensor) const {
    return *at(resolution_, tensors_, tensor).layout;
  }
  Held held_of(std::string_view tensor, size_t axis = 0) const {
    return held(layout(tensor), axis);
  }
  Ranks ranks(std::string_view tensor) const { return layout(tensor).ranks(); }

  /// Number of a device's tensors with `part` in their names.
  i64 count(i64 rank, std::string_view part) const {
    return std::count_if(resolution_.tensors.begin(), resolution_.tensors.end(),
                         [&](const ResolvedTensor& tensor) {
                           return tensors_[tensor.tensor].name.find(part) != std::string::npos &&
                                  tensor.layout->region(rank).has_value();
                         });
  }

  const Resolution& resolution() const { return resolution_; }

 private:
  static std::string document(const std::string& axes, std::string_view preset) {
    return fmt::format(R"({{"version": 1, "extends": ["preset:{}"], "axes": {{{}}}}})", preset,
                       axes);
  }

  std::vector<TensorSpec> tensors_;
  ModelConfig config_;
  Resolution resolution_;
};

std::string expert(i64 number, std::string_view part = "w1", i64 layer = 0) {
  return fmt::format("model.layers.{}.block_sparse_moe.experts.{}.{}.weight", layer, number, part);
}

std::string gate(i64 layer) {
  return fmt::format("model.layers.{}.mlp.gate_proj.weight", layer);
}

/// Mixtral as stored by transformers 5: the experts of a layer in one tensor.
TinyModel stacked_mixtral(i64 experts) {
  TinyModel model = tiny_mixtral({.layers = 1}, experts);
  std::erase_if(model.tensors, [](const TensorSpec& tensor) {
    return tensor.name.find("block_sparse_moe.experts") != std::string::npos;
  });
  model.tensors.push_back(spec("model.layers.0.mlp.experts.gate_up_proj", {experts, 192, 64}));
  model.tensors.push_back(spec("model.layers.0.mlp.experts.down_proj", {experts, 64, 96}));
  return model;
}

/// Numbers of the experts of layer 0 on each device.
std::vector<Ranks> experts_by_rank(const OnMesh& model, i64 experts, i64 devices) {
  std::vector<Ranks> by_rank(static_cast<size_t>(devices));
  for (i64 e = 0; e < experts; ++e) {
    for (const i64 rank : model.ranks(expert(e))) by_rank[static_cast<size_t>(rank)].push_back(e);
  }
  return by_rank;
}

/// Layers of each stage.
std::vector<Ranks> layers_by_stage(const std::string& axes, i64 layers, i64 stages) {
  const OnMesh model("llama", tiny_llama({.layers = layers}), fmt::format("pp={}", stages), axes);
  std::vector<Ranks> by_stage(static_cast<size_t>(stages));
  for (i64 layer = 0; layer < layers; ++layer) {
    for (const i64 stage : model.ranks(gate(layer))) {
      CHECK(model.ranks(fmt::format("model.layers.{}.input_layernorm.weight", layer)) ==
            Ranks{stage});
      by_stage[static_cast<size_t>(stage)].push_back(layer);
    }
  }
  return by_stage;
}

TEST_CASE("dp, like any mesh axis that nothing lies over, makes replicas") {
  const OnMesh model("llama", tiny_llama(), "dp=2,tp=2");
  CHECK(model.held_of(gate(0)) == Held{"[0, 48)", "[48, 96)", "[0, 48)", "[48, 96)"});
  const OnMesh alone("llama", tiny_llama(), "dp=3");
  for (const ResolvedTensor& tensor : alone.resolution().tensors) {
    CHECK(tensor.layout->ranks() == Ranks{0, 1, 2});
    CHECK_FALSE(tensor.layout->is_sharded());
  }
}

TEST_CASE("tp x pp: whole layers on a stage, and each of them cut over its devices") {
  const OnMesh stages_first("llama", tiny_llama(), "pp=2,tp=2");
  CHECK(stages_first.held_of(gate(1)) == Held{"not here", "not here", "[0, 48)", "[48, 96)"});
  // Ranks are row-major: with tp first, a stage is every other device.
  const OnMesh parts_first("llama", tiny_llama(), "tp=2,pp=2");
  CHECK(parts_first.held_of(gate(1)) == Held{"not here", "[0, 48)", "not here", "[48, 96)"});
}

TEST_CASE("tp x ep: the dense part is repeated over ep, an expert is on one part of it") {
  const OnMesh model("mixtral", tiny_mixtral(), "tp=2,ep=2");
  CHECK(model.held_of(expert(1)) == Held{"[0, 48)", "not here", "[48, 96)", "not here"});
  CHECK(model.held_of(expert(2, "w2"), 1) == Held{"not here", "[0, 48)", "not here", "[48, 96)"});
  CHECK(model.held_of("model.layers.0.self_attn.q_proj.weight") ==
        Held{"[0, 32)", "[0, 32)", "[32, 64)", "[32, 64)"});
}

TEST_CASE("ep x tp x pp: a part of an expert of a layer is on one device of eight") {
  const OnMesh model("mixtral", tiny_mixtral(), "ep=2,tp=2,pp=2");
  for (i64 layer = 0; layer < 2; ++layer) {
    for (i64 number = 0; number < 4; ++number) {
      const i64 first = number / 2 * 4 + layer;
      CHECK(model.ranks(expert(number, "w3", layer)) == Ranks{first, first + 2});
      CHECK(model.held_of(expert(number, "w3", layer))[static_cast<size_t>(first)] == "[0, 48)");
    }
    const std::string router = fmt::format("model.layers.{}.block_sparse_moe.gate.weight", layer);
    CHECK(model.ranks(router) == Ranks{layer, layer + 2, layer + 4, layer + 6});
  }
}

TEST_CASE("experts can lie over ep and tp together, whole") {
  const OnMesh model("mixtral", tiny_mixtral(), "ep=2,tp=2",
                     R"("experts": ["ep", "tp"], "mlp": null)");
  for (i64 number = 0; number < 4; ++number) {
    CHECK(model.ranks(expert(number)) == Ranks{number});
    CHECK(model.held_of(expert(number))[static_cast<size_t>(number)] == "[0, 96)");
  }
}

TEST_CASE("fsdp x tp: parameters are cut over both, what computes over tp alone") {
  const TinyModel tiny = tiny_llama({.kv_heads = 8});
  const OnMesh stored("llama", tiny, "fsdp=2,tp=2", R"("embed": "fsdp")");
  const OnMesh computing("llama", tiny, "fsdp=2,tp=2");
  CHECK(stored.held_of(gate(0), 0) == computing.held_of(gate(0), 0));
  CHECK(stored.held_of(gate(0), 1) == Held{"[0, 32)", "[0, 32)", "[32, 64)", "[32, 64)"});
  CHECK(computing.held_of(gate(0), 1) == Held{"[0, 64)", "[0, 64)", "[0, 64)", "[0, 64)"});
  // One axis over both: tp's parts are cut again.
  const OnMesh both("llama", tiny, "fsdp=2,tp=2", R"("mlp": ["tp", "fsdp"])");
  CHECK(both.held_of(gate(0), 0) == Held{"[0, 24)", "[48, 72)", "[24, 48)", "[72, 96)"});
}

TEST_CASE("60 experts over 8 devices are 8, 8, 8, 8, 7, 7, 7, 7, and none is lost") {
  const TinyModel named = tiny_mixtral({.layers = 1}, 60);
  const TinyModel stacked = stacked_mixtral(60);
  for (const std::string axes : {"", R"("experts": {"owners": "round_robin"})"}) {
    CAPTURE(axes);
    const OnMesh by_name("mixtral", named, "ep=8", axes);
    const std::vector<Ranks> experts = experts_by_rank(by_name, 60, 8);
    const OnMesh as_dimension("mixtral", stacked, "ep=8", axes);
    const auto& down = as_dimension.layout("model.layers.0.mlp.experts.down_proj");
    Ranks all;
    for (size_t rank = 0; rank < 8; ++rank) {
      CHECK(experts[rank].size() == (rank < 4 ? 8 : 7));
      Ranks rows;
      const auto region = down.region(static_cast<i64>(rank));
      REQUIRE(region);
      for (const index::Piece& piece : (*region)[0].pieces()) {
        for (i64 i = 0; i < piece.size; ++i) rows.push_back(piece.global + i);
      }
      CHECK(rows == experts[rank]);  // the number in a name and a dimension are one axis
      all.insert(all.end(), rows.begin(), rows.end());
    }
    std::sort(all.begin(), all.end());
    Ranks expected(60);
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(all == expected);
  }
}

TEST_CASE("experts round-robin: expert e is on device e mod n") {
  const OnMesh model("mixtral", tiny_mixtral({.layers = 1}, 10), "ep=4",
                     R"("experts": {"owners": "round_robin"})");
  CHECK(experts_by_rank(model, 10, 4) == std::vector<Ranks>{{0, 4, 8}, {1, 5, 9}, {2, 6}, {3, 7}});
}

TEST_CASE("a list of owners repeats the experts that are used most") {
  const std::string axes = R"("experts": {"owners": [[0, 1, 2], [3, 0, 4], [5, 0, 3]]})";
  const OnMesh by_name("mixtral", tiny_mixtral({.layers = 1}, 6), "ep=3", axes);
  CHECK(experts_by_rank(by_name, 6, 3) == std::vector<Ranks>{{0, 1, 2}, {0, 3, 4}, {0, 3, 5}});
  CHECK(by_name.resolution().tensors.size() == tiny_mixtral({.layers = 1}, 6).tensors.size());
  // If experts are a dimension, a device stores them in the order of its list.
  const OnMesh as_dimension("mixtral", stacked_mixtral(6), "ep=3,tp=2", axes);
  CHECK(as_dimension.held_of("model.layers.0.mlp.experts.gate_up_proj") ==
        Held{"[0, 3)", "[0, 3)", "[3, 4) [0, 1) [4, 5)", "[3, 4) [0, 1) [4, 5)",
             "[5, 6) [0, 1) [3, 4)", "[5, 6) [0, 1) [3, 4)"});
  CHECK(as_dimension.held_of("model.layers.0.mlp.experts.gate_up_proj", 1)[1] ==
        "[48, 96) [144, 192)");
}

TEST_CASE("an expert that no list names, or that does not exist, is refused") {
  const TinyModel model = tiny_mixtral({.layers = 1}, 4);
  CHECK_ERROR(kStrategy,
              OnMesh("mixtral", model, "ep=2", R"("experts": {"owners": [[0, 1], [2]]})"));
  CHECK_ERROR(kStrategy,
              OnMesh("mixtral", model, "ep=2", R"("experts": {"owners": [[0, 1], [2, 3, 4]]})"));
  CHECK_ERROR(kStrategy,
              OnMesh("mixtral", model, "ep=2", R"("experts": {"owners": [[0, 1], [2], [3]]})"));
}

TEST_CASE("deepseek_v3: routed experts over ep, the shared ones with the dense part") {
  TinyModel model{R"({"architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 64,
    "num_attention_heads": 8, "qk_nope_head_dim": 4, "qk_rope_head_dim": 4, "v_head_dim": 4,
    "n_routed_experts": 8, "num_hidden_layers": 1})",
                  {}};
  const std::string mlp = "model.layers.0.mlp.";
  for (int e = 0; e < 8; ++e)
    model.tensors.push_back(spec(fmt::format("{}experts.{}.up_proj.weight", mlp, e), {32, 64}));
  model.tensors.push_back(spec(mlp + "shared_experts.up_proj.weight", {32, 64}));
  model.tensors.push_back(spec(mlp + "gate.e_score_correction_bias", {8}, Dtype::kF32));
  const OnMesh eplb("deepseek_v3", model, "dp=2,ep=4",
                    R"("experts": {"owners": [[0, 1, 7], [2, 3, 0], [4, 5, 0], [6, 7, 2]]})");
  CHECK(eplb.ranks(mlp + "experts.7.up_proj.weight") == Ranks{0, 3, 4, 7});
  CHECK(eplb.ranks(mlp + "experts.0.up_proj.weight") == Ranks{0, 1, 2, 4, 5, 6});
  CHECK(eplb.count(1, "mlp.experts.") == 3);
  CHECK(eplb.ranks(mlp + "shared_experts.up_proj.weight").size() == 8);
  CHECK(eplb.held_of(mlp + "gate.e_score_correction_bias")[5] == "[0, 8)");
}

TEST_CASE("a mesh axis that cuts nothing is told with the setting that cuts over it, if one does") {
  const std::string idle =
      "mesh axis 'fsdp' cuts no tensor: the {} devices along it get the same bytes; the mapping "
      "cuts over pp, tp";
  const auto warnings = [](std::string_view mesh, const std::string& axes = "") {
    return OnMesh("llama", tiny_llama(), mesh, axes).resolution().warnings;
  };
  CHECK(warnings("fsdp=4,tp=2") ==
        std::vector<std::string>{fmt::format(fmt::runtime(idle), 4) +
                                 "; --set axes.embed=fsdp cuts 'embed' over it"});
  CHECK(warnings("fsdp=4,tp=2", R"("embed": "fsdp")").empty());
  CHECK(warnings("dp=4,tp=2").front().find("--set") == std::string::npos);  // replicas are meant
  // An embedding of 64 cannot be cut over 128 devices.
  CHECK(warnings("fsdp=128,tp=2") ==
        std::vector<std::string>{fmt::format(fmt::runtime(idle), 128)});
}

TEST_CASE(
    "experts alone on the devices of tp are whole there, and the layers beside them are cut") {
  const TinyModel model = tiny_mixtral({.layers = 1}, 4);
  const std::string alone = R"("experts": {"mesh": "tp", "alone": true})";
  CHECK_ERROR(kMeshAxisReused, OnMesh("mixtral", model, "tp=2", R"("experts": "tp")"));
  const OnMesh over_tp("mixtral", model, "tp=2", alone);
  CHECK(over_tp.ranks(expert(1)) == Ranks{0});
  CHECK(over_tp.ranks(expert(2)) == Ranks{1});
  CHECK_FALSE(over_tp.layout(expert(2)).axes()[0].expr.is_sharded());
  CHECK(over_tp.held_of("model.layers.0.self_attn.o_proj.weight", 1) ==
        Held{"[0, 32)", "[32, 64)"});
  const OnMesh over_both("mixtral", model, "ep=2,tp=2",
                         R"("experts": {"mesh": ["ep", "tp"], "alone": true})");
  CHECK(over_both.ranks(expert(2)) == Ranks{2});
  CHECK_FALSE(over_both.layout(expert(2)).axes()[0].expr.is_sharded());
}

TEST_CASE("an axis alone leaves the same axis of other tensors cut, shared experts for one") {
  TinyModel model{R"({"architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 64,
    "num_attention_heads": 8, "qk_nope_head_dim": 4, "qk_rope_head_dim": 4, "v_head_dim": 4,
    "n_routed_experts": 4, "num_hidden_layers": 1})",
                  {}};
  const std::string mlp = "model.layers.0.mlp.";
  for (int e = 0; e < 4; ++e)
    model.tensors.push_back(spec(fmt::format("{}experts.{}.up_proj.weight", mlp, e), {32, 64}));
  model.tensors.push_back(spec(mlp + "shared_experts.up_proj.weight", {32, 64}));
  const OnMesh over_tp("deepseek_v3", model, "tp=2", R"("experts": {"mesh": "tp", "alone": true})");
  CHECK_FALSE(over_tp.layout(mlp + "experts.3.up_proj.weight").axes()[0].expr.is_sharded());
  CHECK(over_tp.ranks(mlp + "experts.3.up_proj.weight") == Ranks{1});
  CHECK(over_tp.held_of(mlp + "shared_experts.up_proj.weight") == Held{"[0, 16)", "[16, 32)"});
}

TEST_CASE("10 layers over 4 stages: 3, 3, 2, 2, in chunks 3, 3, 3, 1, or as a list says") {
  CHECK(layers_by_stage("", 10, 4) == std::vector<Ranks>{{0, 1, 2}, {3, 4, 5}, {6, 7}, {8, 9}});
  CHECK(layers_by_stage(R"("layers": {"uneven": "chunk"})", 10, 4) ==
        std::vector<Ranks>{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9}});
  // The ends of the pipeline have fewer layers, since they also have the embeddings and the head.
  CHECK(layers_by_stage(R"("layers": {"owners": [[0, 1], [2, 3, 4], [5, 6, 7], [8, 9]]})", 10, 4) ==
        std::vector<Ranks>{{0, 1}, {2, 3, 4}, {5, 6, 7}, {8, 9}});
  // Two virtual stages on each device.
  CHECK(layers_by_stage(R"("layers": {"owners": [[0, 1, 4, 5], [2, 3, 6, 7]]})", 8, 2) ==
        std::vector<Ranks>{{0, 1, 4, 5}, {2, 3, 6, 7}});
  CHECK_ERROR(kNotDivisible, layers_by_stage(R"("layers": {"uneven": "error"})", 10, 4));
  CHECK_ERROR(kEmptyShard, layers_by_stage(R"("layers": {"uneven": "chunk"})", 5, 4));
}

TEST_CASE("embeddings and heads can be put on the first and the last stage") {
  const TinyModel model = tiny_llama({.layers = 4});
  const std::string own = R"({"version": 1, "extends": ["preset:llama"], "overrides": [
    {"match": "model.embed_tokens.weight", "dims": ["vocab", null], "at": {"layers": FIRST}},
    {"match": "{lm_head,model.norm}.weight", "strategy": "replicate", "at": {"layers": -1}}]})";
  const auto with = [&](const std::string& first) {
    std::string text = own;
    return extending("llama", text.replace(text.find("FIRST"), 5, first));
  };
  const ModelConfig config = config_of(model.config);
  const auto result = resolve(with("0"), model.tensors, &config, over("pp=2,tp=2"));
  const auto ranks = [&](std::string_view name) {
    return at(result, model.tensors, name).layout->ranks();
  };
  CHECK(ranks("model.embed_tokens.weight") == Ranks{0, 1});
  CHECK(ranks("lm_head.weight") == Ranks{2, 3});
  CHECK(ranks("model.norm.weight") == Ranks{2, 3});
  const auto tied = resolve(with("[0, -1]"), model.tensors, &config, over("pp=4,tp=2"));
  const auto& ends = at(tied, model.tensors, "model.embed_tokens.weight");
  CHECK(ends.layout->ranks() == Ranks{0, 1, 6, 7});
  CHECK(why(ends).find("puts it where index 0 or 3 of 'layers' lives") != std::string::npos);
  CHECK_ERROR(kShapeMismatch, resolve(with("[0, 4]"), model.tensors, &config, over("pp=2")));
  CHECK_ERROR(kShapeMismatch, resolve(with("4"), model.tensors, &config, over("pp=2")));
  CHECK_ERROR(kShapeMismatch, resolve(with("-5"), model.tensors, &config, over("pp=2")));
}

}  // namespace
}  // namespace shardtool::mapping
