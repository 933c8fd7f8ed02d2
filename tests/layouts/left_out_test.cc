#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "lib/api/transform.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

/// Tied models that store both of the tied tensors.
namespace shardtool::layouts {
namespace {

using nlohmann::json;
using test::TempFolder;

constexpr const char* kEmbed = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

/// Writes a tied Llama without its layer, with an output matrix of its own.
void write_model(const TempFolder& folder, const test::Tensor& head) {
  test::Tensors tensors;
  tensors[kEmbed] = test::numbered_tensor(kEmbed, Dtype::kBF16, {70, 4});
  tensors[kHead] = head;
  tensors["model.norm.weight"] = test::numbered_tensor("model.norm.weight", Dtype::kBF16, {4});
  test::write_checkpoint(folder / "whole", tensors);
  folder.write("whole/config.json",
               R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
                   "tie_word_embeddings": true, "hidden_size": 4, "vocab_size": 70,
                   "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 4,
                   "num_hidden_layers": 1})");
}

void split_for(const TempFolder& folder, const std::string& layout,
               const std::string& mapping = "") {
  api::SplitOptions options;
  options.source = folder / "whole";
  options.mapping.path = mapping;
  options.mapping.mesh = mesh::parse_mesh("tp=2");
  options.write.output = folder / "parts";
  options.write.layout = layout;
  options.write.force = true;
  api::split(options);
}

/// Writes a Llama of one layer without its matrices. Every name but that of the head begins with
/// `module`.
void write_norms(const TempFolder& folder, const std::string& module) {
  const std::map<std::string, Shape> shapes = {
      {module + "embed_tokens.weight", {70, 4}},
      {module + "norm.weight", {4}},
      {module + "layers.0.input_layernorm.weight", {4}},
      {module + "layers.0.self_attn.rotary_emb.inv_freq", {2}},
      {kHead, {70, 4}},
  };
  test::Tensors tensors;
  for (const auto& [name, shape] : shapes)
    tensors[name] = test::numbered_tensor(name, Dtype::kBF16, shape);
  test::write_checkpoint(folder / "whole", tensors);
  folder.write("whole/config.json",
               R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
                   "tie_word_embeddings": false, "hidden_size": 4, "vocab_size": 70,
                   "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 4,
                   "num_hidden_layers": 1})");
}

}  // namespace

TEST_CASE("a tied output matrix that equals the embedding is stored once") {
  for (const std::string layout : {"vllm", "sglang"}) {
    const TempFolder folder;
    write_model(folder, test::numbered_tensor(kHead, Dtype::kBF16, {70, 4}));
    split_for(folder, layout);
    const auto stored = test::read_tensors(folder / "parts", "model-rank-0");
    CHECK(stored.contains(kHead));
    CHECK_FALSE(stored.contains(kEmbed));
    CHECK(stored.at(kHead).spec.shape == Shape{64, 4});
    const json manifest = json::parse(std::ifstream(folder / "parts/manifest.json"));
    CHECK(manifest.at("dropped") == json::array({kHead}));
  }
}

TEST_CASE("tied tensors that differ are refused, in shape and in any byte") {
  const TempFolder folder;
  write_model(folder, test::numbered_tensor(kHead, Dtype::kBF16, {71, 4}));
  CHECK_ERROR(kTied, split_for(folder, "vllm"));
  test::Tensor other = test::numbered_tensor(kHead, Dtype::kBF16, {70, 4});
  other.bytes.back() = static_cast<decltype(other.bytes)::value_type>(other.bytes.back() ^ 1);
  write_model(folder, other);
  CHECK_ERROR(kTied, split_for(folder, "vllm"));
}

TEST_CASE("frequencies of rotary embeddings, which engines compute, are left out") {
  const std::string frequencies = "model.layers.0.self_attn.rotary_emb.inv_freq";
  for (const std::string layout : {"vllm", "sglang", "meta"}) {
    CAPTURE(layout);
    const TempFolder folder;
    write_norms(folder, "model.");
    split_for(folder, layout);
    for (const auto& [name, tensor] : test::read_tensors(folder / "parts", ""))
      CHECK(name.find("inv_freq") == name.npos);
    const json manifest = json::parse(std::ifstream(folder / "parts/manifest.json"));
    CHECK(manifest.at("dropped") == json::array({frequencies}));
  }
}

TEST_CASE("names without the module that the engine has in front are refused, with a way out") {
  const std::string names = "{embed_tokens,layers,norm}.**";
  const std::string read =
      R"("read": [{"name": ")" + names + R"(", "of": "model.)" + names + R"("}])";
  for (const std::string layout : {"vllm", "sglang"}) {
    CAPTURE(layout);
    const TempFolder named;
    write_norms(named, "model.");
    split_for(named, layout);
    const TempFolder folder;
    write_norms(folder, "");
    const auto error = testing::error_of([&] { split_for(folder, layout); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kNoRule);
    REQUIRE_FALSE(error->help_lines().empty());
    CHECK(error->help_lines().front().find("'model.embed_tokens.weight'") != std::string::npos);
    CHECK(error->help_lines().front().find(read) != std::string::npos);
    folder.write("mapping.json", R"({"version": 1, "extends": ["preset:llama"], )" + read + "}");
    split_for(folder, layout, folder / "mapping.json");
    const auto as_advised = test::read_tensors(folder / "parts", "model-rank-1");
    const auto expected = test::read_tensors(named / "parts", "model-rank-1");
    CHECK(as_advised.size() == expected.size());
    for (const auto& [name, tensor] : expected) {
      REQUIRE(as_advised.contains(name));
      CHECK(as_advised.at(name).bytes == tensor.bytes);
    }
  }
}

TEST_CASE("a layout says what it cannot store, not that a tensor has no name in it") {
  const TempFolder folder;
  test::Tensors tensors;
  for (const std::string name :
       {"model.embed_tokens.weight", "model.norm.weight", "model.layers.0.self_attn.o_proj.bias"}) {
    tensors[name] = test::numbered_tensor(name, Dtype::kBF16,
                                          name.ends_with("tokens.weight") ? Shape{8, 4} : Shape{4});
  }
  test::write_checkpoint(folder / "whole", tensors);
  folder.write("whole/config.json",
               R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
                   "tie_word_embeddings": false, "attention_bias": true, "hidden_size": 4,
                   "vocab_size": 8, "num_attention_heads": 2, "num_key_value_heads": 2,
                   "intermediate_size": 4, "num_hidden_layers": 1})");
  const auto error = testing::error_of([&] { split_for(folder, "meta"); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUnsupported);
  REQUIRE_FALSE(error->notes().empty());
  CHECK(error->notes().front().second == "Meta's attention has no bias");
}

}  // namespace shardtool::layouts
