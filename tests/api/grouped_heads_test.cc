// Bytes of query heads and their KV heads on any number of devices, and of tied embeddings.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tests/api/model_files.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::ModelFiles;
using test::same_tensors;
using test::Tensors;

constexpr i64 kHeadDim = 2;
const std::string kAttention = "model.layers.0.self_attn.";

/// A range of heads, [begin, end).
struct Heads {
  i64 begin = 0;
  i64 end = 0;
};

/// Row numbers of a range of heads.
std::vector<i64> rows_of(Heads heads) {
  std::vector<i64> rows(static_cast<size_t>((heads.end - heads.begin) * kHeadDim));
  std::iota(rows.begin(), rows.end(), heads.begin * kHeadDim);
  return rows;
}

struct Grouped {
  i64 heads;
  i64 kv_heads;
  i64 devices;
  std::string axes;          ///< "axes" of the mapping, or empty
  std::vector<Heads> query;  ///< per device
  std::vector<Heads> kv;
};

const std::vector<Grouped> kTable = {
    // Whole groups of seven, one more on the first device: Qwen2-7B over three.
    {28, 4, 3, "", {{0, 14}, {14, 21}, {21, 28}}, {{0, 2}, {2, 3}, {3, 4}}},
    // Groups that divide.
    {8, 4, 2, "", {{0, 4}, {4, 8}}, {{0, 2}, {2, 4}}},
    // More devices than KV heads: each KV head is repeated on neighbours, starting with ranks 0 and
    // 1.
    {8,
     4,
     8,
     "",
     {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 8}},
     {{0, 1}, {0, 1}, {1, 2}, {1, 2}, {2, 3}, {2, 3}, {3, 4}, {3, 4}}},
    // One KV head for all query heads.
    {6, 1, 3, "", {{0, 2}, {2, 4}, {4, 6}}, {{0, 1}, {0, 1}, {0, 1}}},
    // On request, each device gets all KV heads that its queries need.
    {10,
     2,
     4,
     R"("kv_heads": {"small": "gather"})",
     {{0, 3}, {3, 6}, {6, 8}, {8, 10}},
     {{0, 1}, {0, 2}, {1, 2}, {1, 2}}}};

mapping::TinyModel llama(i64 heads, i64 kv_heads) {
  return mapping::tiny_llama(
      {.layers = 1, .heads = heads, .kv_heads = kv_heads, .head_dim = kHeadDim});
}

TEST_CASE("queries and their keys and values lie together: the table of head counts") {
  for (const Grouped& c : kTable) {
    CAPTURE(c.heads);
    CAPTURE(c.kv_heads);
    CAPTURE(c.devices);
    ModelFiles model(llama(c.heads, c.kv_heads));
    model.extend("llama", c.axes);
    const std::string parts = model.split("parts", fmt::format("tp={}", c.devices));
    for (size_t rank = 0; rank < c.query.size(); ++rank) {
      const Tensors here = test::shards(parts, static_cast<i64>(rank));
      const auto holds = [&](const std::string& name, Heads heads) {
        return here.at(name).bytes == test::rows(model.tensor(name), rows_of(heads));
      };
      CHECK(holds(kAttention + "q_proj.weight", c.query[rank]));
      CHECK(holds(kAttention + "k_proj.weight", c.kv[rank]));
      CHECK(holds(kAttention + "v_proj.weight", c.kv[rank]));
      CHECK(here.at(kAttention + "o_proj.weight").spec.shape[1] ==
            (c.query[rank].end - c.query[rank].begin) * kHeadDim);
    }
    CHECK(same_tensors(model.merged(parts), model.whole()));
    CHECK(test::folder_content(model.reshard(parts, "tp=2")) ==
          test::folder_content(model.split("two", "tp=2")));
  }
}

TEST_CASE("queries that need parts of two KV heads are refused until gathering is asked for") {
  ModelFiles model(llama(10, 2));
  const auto e = testing::error_of([&] { return model.split("parts", "tp=4"); });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kGroups);
  CHECK(std::any_of(e->help_lines().begin(), e->help_lines().end(), [](const std::string& help) {
    return help.find("--set axes.kv_heads.small=gather") != std::string::npos;
  }));
}

constexpr auto kTied = R"("tied": [["model.embed_tokens.weight", "lm_head.weight"]])";

/// Llama with tied embeddings; the head is omitted, or stored too.
ModelFiles tied_llama(bool stored_twice) {
  mapping::TinyModel model = llama(9, 3);
  model.config.pop_back();
  model.config += R"(, "tie_word_embeddings": true})";
  Tensors tensors;
  for (const TensorSpec& spec : model.tensors) tensors[spec.name] = test::distinct_tensor(spec);
  tensors["lm_head.weight"].bytes = tensors["model.embed_tokens.weight"].bytes;
  if (!stored_twice) tensors.erase("lm_head.weight");
  return ModelFiles(std::move(tensors), model.config);
}

TEST_CASE("tied embeddings are cut by one rule, stored once or twice, and come back as they were") {
  for (const bool stored_twice : {false, true}) {
    for (const std::string tied : {"", kTied}) {
      CAPTURE(stored_twice);
      CAPTURE(tied);
      ModelFiles model = tied_llama(stored_twice);
      model.extend("llama", "", tied);
      const std::string parts = model.split("parts", "tp=3");
      for (i64 rank = 0; rank < 3; ++rank) {
        const Tensors here = test::shards(parts, rank);
        CHECK(here.at("model.embed_tokens.weight").spec.shape[0] == (rank == 0 ? 34 : 33));
        CHECK(here.contains("lm_head.weight") == stored_twice);
        if (stored_twice)
          CHECK(here.at("lm_head.weight").bytes == here.at("model.embed_tokens.weight").bytes);
      }
      CHECK(same_tensors(model.merged(parts), model.whole()));
      CHECK(test::folder_content(model.reshard(parts, "tp=2")) ==
            test::folder_content(model.split("two", "tp=2")));
    }
  }
}

}  // namespace
}  // namespace shardtool::api
