#include "lib/layouts/recognise.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/layouts/tables.h"

/// Names of other tools are told from those of models, so that errors can say how to read them.
namespace shardtool::layouts {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Names = std::vector<std::string>;

Names keys(const json& object) {
  Names names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("the names of a trainer's tensors are told from the model's") {
  for (const fs::path& path : test::tables("torchtitan@0.3", "read")) {
    CAPTURE(path.string());
    const Names names = keys(json::parse(std::ifstream(path)).at("tensors"));
    CHECK(layouts_with_tensors(names, Names{"__0_0.distcp", "__1_0.distcp"}) ==
          Names{"torchtitan"});
    const Names of_rank = layouts_with_tensors(names, Names{"consolidated.00.pth"});
    CHECK(std::ranges::count(of_rank, "torchtitan") == 1);
  }
  for (const std::string layout : {"meta@3", "deepseek@3.2", "vllm@0.32"}) {
    for (const fs::path& path : test::tables(layout)) {
      CAPTURE(path.string());
      const Names names = keys(json::parse(std::ifstream(path)).at("tensors"));
      CHECK(layouts_with_tensors(names, Names{"model.safetensors"}).empty());
    }
  }
  const Names megatron = {"decoder.layers.self_attention.linear_qkv.weight",
                          "embedding.word_embeddings.weight", "rng_state/shard_0_1", "other"};
  const Names files = {"__0_0.distcp"};
  CHECK(layouts_with_tensors(megatron, files) == Names{"megatron"});
  CHECK(layouts_with_tensors(Names{"other", "embedding.word_embeddings.weight"}, files).empty());
  CHECK(layouts_with_tensors({}, files).empty());
  const Names meta = {"tok_embeddings.weight", "layers.0.attention.wq.weight", "norm.weight"};
  const Names of_rank = layouts_with_tensors(meta, Names{"consolidated.00.pth"});
  CHECK(std::ranges::count(of_rank, "meta") == 1);
  CHECK(std::ranges::count(layouts_with_tensors(meta, files), "meta") == 0);
}

TEST_CASE("file names say whose code cut the files") {
  CHECK(layouts_with_files(Names{"consolidated.00.pth", "consolidated.01.pth"}) == Names{"meta"});
  CHECK(layouts_with_files(Names{"consolidated.00.safetensors"}) == Names{"meta"});
  CHECK(layouts_with_files(Names{"model0-mp2.safetensors", "model1-mp2.safetensors"}) ==
        Names{"deepseek"});
  CHECK(layouts_with_files(Names{"consolidated.00.pth", "model.safetensors"}).empty());
  CHECK(layouts_with_files(Names{"model-00001-of-00002.safetensors"}).empty());
  CHECK(layouts_with_files({}).empty());
}

TEST_CASE("advice names every layout that may be meant") {
  CHECK(advice_to_name(Names{"meta", "torchtitan"}, "ck") ==
        "the names are those of meta or torchtitan: give meta:ck or torchtitan:ck");
}

}  // namespace shardtool::layouts
