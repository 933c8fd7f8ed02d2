// Bytes of experts on all kinds of meshes: by name and as a dimension, on one device or several.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "tests/api/model_files.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::ModelFiles;
using test::same_tensors;
using test::Tensors;

constexpr auto kNamed = "model.layers.0.block_sparse_moe.experts.{}.{}.weight";
constexpr auto kUp = "model.layers.0.mlp.experts.gate_up_proj";
constexpr auto kDown = "model.layers.0.mlp.experts.down_proj";

/// Six experts over three devices; the busy ones, 0 and 3, are on several of them.
constexpr auto kRepeated = R"("experts": {"owners": [[0, 1, 2], [3, 0, 4], [5, 0, 3]]})";
const std::vector<std::vector<i64>> kOwned = {{0, 1, 2}, {3, 0, 4}, {5, 0, 3}};

/// A Mixtral of one layer and six experts, by name or as a dimension.
ModelFiles mixtral(bool stacked) {
  mapping::TinyModel model = mapping::tiny_mixtral({.layers = 1, .mlp = 12}, 6);
  if (stacked) {
    std::erase_if(model.tensors, [](const TensorSpec& spec) {
      return spec.name.find("block_sparse_moe.experts") != std::string::npos;
    });
    model.tensors.push_back({kUp, Dtype::kBF16, {6, 24, 64}});
    model.tensors.push_back({kDown, Dtype::kBF16, {6, 64, 12}});
  }
  return ModelFiles(model);
}

TEST_CASE("experts by name on several devices: shards, merge and reshard keep every byte") {
  ModelFiles model = mixtral(false);
  model.extend("mixtral", kRepeated);
  const std::string parts = model.split("ep", "ep=3");
  for (size_t rank = 0; rank < 3; ++rank) {
    const Tensors here = test::shards(parts, static_cast<i64>(rank));
    const std::set<i64> owned(kOwned[rank].begin(), kOwned[rank].end());
    for (i64 e = 0; e < 6; ++e) {
      for (const std::string part : {"w1", "w2", "w3"}) {
        const std::string name = fmt::format(kNamed, e, part);
        CHECK(here.contains(name) == owned.contains(e));
        if (here.contains(name)) CHECK(here.at(name).bytes == model.tensor(name).bytes);
      }
    }
  }
  CHECK(model.merge(parts).replicas_compared >= 3 * 3);  // 0 twice more, 3 once, of three tensors
  CHECK(same_tensors(test::read_tensors(parts + "-merged", "model"), model.whole()));
  model.extend("mixtral", "");
  CHECK(test::folder_content(model.reshard(parts, "tp=2")) ==
        test::folder_content(model.split("tp", "tp=2")));
}

TEST_CASE("experts as a dimension on several devices: rows in the order of the list") {
  ModelFiles model = mixtral(true);
  model.extend("mixtral", kRepeated);
  const std::string parts = model.split("ep", "ep=3");
  for (size_t rank = 0; rank < 3; ++rank) {
    const Tensors here = test::shards(parts, static_cast<i64>(rank));
    for (const char* name : {kUp, kDown}) {
      CHECK(here.at(name).spec.shape[0] == 3);
      CHECK(here.at(name).bytes == test::rows(model.tensor(name), kOwned[rank]));
    }
  }
  CHECK(same_tensors(model.merged(parts), model.whole()));
  model.extend("mixtral", "");
  CHECK(test::folder_content(model.reshard(parts, "ep=2,tp=2")) ==
        test::folder_content(model.split("ep-tp", "ep=2,tp=2")));
}

TEST_CASE("a repeated expert of which one copy differs is refused by name") {
  ModelFiles model = mixtral(false);
  model.extend("mixtral", kRepeated);
  const std::string parts = model.split("ep", "ep=3");
  const std::string file = "model-rank-2-part-0.safetensors";
  std::string content = test::folder_content(parts).at(file);
  const test::Bytes& expert = model.tensor(fmt::format(kNamed, 3, "w2")).bytes;
  const size_t at = content.find(std::string(expert.begin(), expert.end()));
  REQUIRE(at != std::string::npos);
  content[at + 5] = static_cast<char>(content[at + 5] ^ 1);
  std::ofstream(parts + "/" + file, std::ios::binary) << content;
  const auto e = testing::error_of([&] { return model.merge(parts); });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kDataMismatch);
  CHECK(e->tensor_name() == fmt::format(kNamed, 3, "w2"));
}

TEST_CASE("reshard between tensor, expert and pipeline parallelism is the split, file for file") {
  struct Target {
    std::string mesh;
    std::string axes;
  };
  const std::vector<Target> targets = {
      {"tp=4", ""},
      {"ep=4", ""},
      {"ep=3", kRepeated},
      {"ep=2,tp=2", R"("experts": {"owners": "round_robin"})"},
      {"fsdp=2,tp=2", R"("embed": "fsdp", "expert_embed": "fsdp")"},
      {"dp=2,ep=2", ""}};
  for (const bool stacked : {false, true}) {
    CAPTURE(stacked);
    ModelFiles model = mixtral(stacked);
    for (size_t from = 0; from < targets.size(); ++from) {
      const Target& a = targets[from];
      const Target& b = targets[(from + 1) % targets.size()];
      CAPTURE(a.mesh);
      CAPTURE(b.mesh);
      model.extend("mixtral", a.axes);
      const std::string parts = model.split(fmt::format("from-{}", from), a.mesh);
      model.extend("mixtral", b.axes);
      CHECK(test::folder_content(model.reshard(parts, b.mesh)) ==
            test::folder_content(model.split(fmt::format("to-{}", from), b.mesh)));
    }
  }
}

}  // namespace
}  // namespace shardtool::api
