#include "lib/mapping/init.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/mapping/fixtures.h"
#include "tests/mapping/models.h"

namespace shardtool::mapping {
namespace {

TEST_CASE("the file that init writes resolves to what the preset resolves to") {
  for (const auto& [preset, model] :
       {std::pair{"llama", tiny_llama()}, std::pair{"mixtral", tiny_mixtral()},
        std::pair{"phi3", tiny_phi3()}, std::pair{"gpt2", tiny_gpt2()}}) {
    for (const std::string mesh : {"tp=2", "ep=2,tp=2", "fsdp=2,pp=2"}) {
      CAPTURE(preset);
      CAPTURE(mesh);
      const ModelConfig config = config_of(model.config);
      const std::string text =
          init_mapping(&config, preset, mesh::parse_mesh(mesh), model.tensors).text;
      const Resolution own = resolve(extending(preset, text), model.tensors, &config, {});
      const Resolution theirs = resolve(load_preset(preset), model.tensors, &config, over(mesh));
      CHECK(own.mesh == theirs.mesh);
      CHECK(own.warnings.empty());
      REQUIRE(own.tensors.size() == theirs.tensors.size());
      for (size_t i = 0; i < own.tensors.size(); ++i) {
        CHECK(own.tensors[i].layout->ranks() == theirs.tensors[i].layout->ranks());
        for (const i64 rank : own.tensors[i].layout->ranks()) {
          CHECK(own.tensors[i].layout->region(rank) == theirs.tensors[i].layout->region(rank));
        }
      }
    }
  }
}

TEST_CASE("the file that init writes takes names with characters of globs, and the empty name") {
  const std::vector<TensorSpec> tensors = {
      spec("", {2}),         spec("br{a,b}.w", {4}),      spec("bra.w", {6}),
      spec("x<y>.3.w", {8}), spec("b*.w", {3}),           spec("st**ar", {5}),
      spec("x<.w", {7}),     spec("back\\slash.{}", {9}), spec("x<y>.12.w", {8})};
  const std::string text = init_mapping(nullptr, "", mesh::parse_mesh("tp=2"), tensors).text;
  const Mapping mapping = mapping_of(text);
  const Resolution own = resolve(mapping, tensors, nullptr, {});
  CHECK(own.tensors.size() == tensors.size());
  CHECK(text.find(R"({"regex":"^$","strategy")") != std::string::npos);
}

TEST_CASE("a pattern that is a name, but not for a glob, is answered with one that takes it") {
  const std::vector<TensorSpec> tensors = {spec("br{a,b}.w", {4})};
  const auto error_with = [&](const std::string& rule) {
    const Mapping mapping =
        mapping_of(R"({"version": 1, "rules": [{)" + rule + R"(, "strategy": "replicate"}]})");
    return error_of([&] { return resolve(mapping, tensors, nullptr, over("tp=2")); });
  };
  const auto error = error_with(R"("match": "br{a,b}.w")");
  REQUIRE(error);
  const std::string named = R"("regex": "^br\\{a\\,b\\}\\.w$")";
  CHECK(error->help_lines().front().find("the name itself is written {" + named) !=
        std::string::npos);
  CHECK(error->help_lines().back().find("add a rule, such as {" + named) != std::string::npos);
  CHECK_FALSE(error_with(named));
}

TEST_CASE(
    "the file is written to be edited: one axis a line, and a rule for what the preset does not "
    "know") {
  TinyModel model = tiny_gpt2();
  model.tensors.push_back(spec("h.0.attn.extra", {4}));
  model.tensors.push_back(spec("h.1.attn.extra", {4}));
  const ModelConfig config = config_of(model.config);
  const InitialMapping initial =
      init_mapping(&config, "gpt2", mesh::parse_mesh("tp=2"), model.tensors);
  CHECK(initial.replicated == std::vector<std::string>{"h.*.attn.extra"});
  CHECK(initial.text == R"({
  "version": 1,
  "when": {"architectures":["GPT2LMHeadModel"]},
  "extends": ["preset:gpt2"],
  "mesh": [
    {"axis":"tp","size":2}
  ],
  "axes": {
    "embed": {"mesh":null},
    "head_dim": {"size":"config.n_embd / config.n_head"},
    "heads": {"mesh":"tp","size":"config.n_head"},
    "layers": {"mesh":null,"size":"config.n_layer"},
    "mlp": {"mesh":"tp"},
    "vocab": {"mesh":"tp"}
  },
  "rules": [
    {"match":"h.*.attn.extra","strategy":"replicate","note":"2 of BF16 [4]"}
  ]
}
)");
}

TEST_CASE("tensors whose use is not known are replicated, and the rule's note says so") {
  const std::vector<TensorSpec> tensors = {spec("conv.weight", {8, 4, 3}), spec("conv.bias", {8}),
                                           spec("cell.0.w", {8, 2}), spec("cell.1.w", {6, 2})};
  const InitialMapping initial = init_mapping(nullptr, "", mesh::parse_mesh("tp=2"), tensors);
  CHECK(initial.replicated == std::vector<std::string>{"cell.*.w", "conv.weight"});
  CHECK(initial.text == R"({
  "version": 1,
  "mesh": [
    {"axis":"tp","size":2}
  ],
  "rules": [
    {"match":"cell.*.w","strategy":"replicate","note":"unknown: use not known, whole on every rank; 2 of BF16 [6, 2], BF16 [8, 2]"},
    {"match":"conv.bias","strategy":"replicate","note":"likely: a vector such as a norm, whole; 1 of BF16 [8]"},
    {"match":"conv.weight","strategy":"replicate","note":"unknown: use not known, whole on every rank; 1 of BF16 [8, 4, 3]"}
  ]
}
)");
  const Resolution resolution = resolve(mapping_of(initial.text), tensors, nullptr, {});
  CHECK(resolution.tensors.size() == tensors.size());
}

TEST_CASE("the hidden size in config.json tells how the matrices of an MLP are stored") {
  const ModelConfig config = config_of(R"({"model_type": "own", "hidden_size": 48})");
  const auto dims_of = [&](const Shape& in, const Shape& out, const std::string& name) {
    const std::vector<TensorSpec> tensors = {spec("h.0.mlp.up_proj", in),
                                             spec("h.0.mlp.down_proj", out)};
    const std::string text = init_mapping(&config, "", mesh::parse_mesh("tp=2"), tensors).text;
    const size_t at = text.find("\"dims\":", text.find(name));
    REQUIRE(at != text.npos);
    return text.substr(at + 7, text.find(']', at) - at - 6);
  };
  CHECK(dims_of({48, 80}, {80, 48}, "up_proj") == R"([null,"mlp"])");
  CHECK(dims_of({48, 80}, {80, 48}, "down_proj") == R"(["mlp",null])");
  CHECK(dims_of({80, 48}, {48, 80}, "up_proj") == R"(["mlp",null])");
  CHECK(dims_of({80, 48}, {48, 80}, "down_proj") == R"([null,"mlp"])");
  CHECK(dims_of({4, 48, 80}, {4, 80, 48}, "up_proj") == R"(["experts",null,"mlp"])");
  CHECK(dims_of({4, 80, 48}, {4, 48, 80}, "down_proj") == R"(["experts",null,"mlp"])");
}

TEST_CASE("a vector of unknown use in an attention lets its cut be checked, as it may pair heads") {
  const ModelConfig config = config_of(
      R"({"model_type": "own", "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 4})");
  const auto note_of = [&](const std::string& other, const std::string& name) {
    std::vector<TensorSpec> tensors = {spec("h.0.attn." + other, {8})};
    for (const auto& [role, rows] : {std::pair{"q", 64}, {"k", 32}, {"v", 32}, {"o", 64}})
      tensors.push_back(spec(fmt::format("h.0.attn.{}_proj.weight", role), {rows, 64}));
    const std::string text = init_mapping(&config, "", mesh::parse_mesh("tp=2"), tensors).text;
    const size_t at = text.find("\"note\":\"", text.find(name));
    REQUIRE(at != text.npos);
    return text.substr(at + 8, text.find(':', at + 8) - at - 8);
  };
  for (const std::string name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
    CAPTURE(name);
    CHECK(note_of("lambda_q1", name) == "guess");
    for (const std::string known : {"q_norm.weight", "v_bias", "k_scale"}) {
      CAPTURE(known);
      CHECK(note_of(known, name) == "sure");
    }
  }
  CHECK(note_of("lambda_q1", "lambda_q1") == "unknown");
  CHECK(note_of("q_norm.weight", "q_norm") == "likely");
}

TEST_CASE("of several vocabularies in config.json the nearest one names the rows of a table") {
  const ModelConfig config =
      config_of(R"({"model_type": "own", "type_vocab_size": 2, "vocab_size": 131})");
  const std::vector<TensorSpec> tensors = {spec("x.word_embeddings.weight", {131, 4})};
  const std::string text = init_mapping(&config, "", mesh::parse_mesh("tp=2"), tensors).text;
  CHECK(text.find("131 rows of the vocabulary (config.vocab_size)") != text.npos);
}

TEST_CASE("init of an unknown preset is refused") {
  CHECK_ERROR(kUsage, init_mapping(nullptr, "lama", mesh::parse_mesh("tp=2"), {}));
}

}  // namespace
}  // namespace shardtool::mapping
