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
    const Names found = layouts_with_tensors(keys(json::parse(std::ifstream(path)).at("tensors")));
    CHECK(std::ranges::count(found, "torchtitan") == 1);
  }
  for (const std::string layout : {"meta@3", "deepseek@3.2", "vllm@0.32"}) {
    for (const fs::path& path : test::tables(layout)) {
      CAPTURE(path.string());
      CHECK(layouts_with_tensors(keys(json::parse(std::ifstream(path)).at("tensors"))).empty());
    }
  }
  const Names megatron = {"decoder.layers.self_attention.linear_qkv.weight",
                          "embedding.word_embeddings.weight", "rng_state/shard_0_1", "other"};
  CHECK(layouts_with_tensors(megatron) == Names{"megatron"});
  CHECK(layouts_with_tensors(Names{"other", "embedding.word_embeddings.weight"}).empty());
  CHECK(layouts_with_tensors({}).empty());
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
