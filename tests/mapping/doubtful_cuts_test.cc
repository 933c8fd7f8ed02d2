#include "lib/mapping/propose/doubtful_cuts.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/mapping/init.h"
#include "tests/mapping/fixtures.h"

namespace shardtool::mapping {
namespace {

/// A model that no preset knows: 12 heads and 4 KV heads of 8, gated MLP of 256.
const std::string kConfig = R"({"n_heads": 12, "n_kv_heads": 4, "dim": 96})";

std::vector<TensorSpec> separate() {
  return {spec("blk.0.att.Wq", {96, 96}), spec("blk.0.att.Wk", {32, 96}),
          spec("blk.0.att.Wv", {32, 96}), spec("blk.0.att.Wo", {96, 96}),
          spec("blk.0.ff.W1", {256, 96}), spec("blk.0.ff.W2", {96, 256}),
          spec("blk.0.n1.weight", {96})};
}

std::vector<TensorSpec> fused() {
  return {spec("blk.0.att.Wqkv", {160, 96}), spec("blk.0.att.Wo", {96, 96}),
          spec("blk.0.ff.W13", {512, 96}), spec("blk.0.ff.W2", {96, 256}),
          spec("blk.0.n1.weight", {96})};
}

/// Finds the doubts about rules, each a pattern and a strategy as JSON; other tensors are whole.
std::vector<DoubtfulCut> doubts(const std::vector<TensorSpec>& tensors,
                                const std::vector<std::pair<std::string, std::string>>& rules,
                                const std::string& config_text = kConfig,
                                const std::string& mesh = "tp=2") {
  std::string text = R"({"version": 1, "unknown": "replicate", "mesh": [{"axis": "tp", "size": 2}],
    "rules": [)";
  for (const auto& [match, strategy] : rules) {
    text += fmt::format(R"({}{{"match": "{}", "strategy": {}}})", text.ends_with('[') ? "" : ",\n",
                        match, strategy);
  }
  const ModelConfig config = config_of(config_text);
  const Resolution resolution = resolve(mapping_of(text + "]}"), tensors, &config, over(mesh));
  return doubtful_cuts(resolution, tensors, &config);
}

/// Returns the strategy that the fix of a doubt writes.
std::string advised(const DoubtfulCut& cut) {
  const std::string key = "\"strategy\": ";
  const size_t begin = cut.fix.find(key);
  REQUIRE(begin != cut.fix.npos);
  return cut.fix.substr(begin + key.size(), cut.fix.size() - begin - key.size() - 1);
}

struct Mistake {
  std::string what;
  std::vector<TensorSpec> tensors;
  std::string match;
  std::string strategy;
};

std::vector<Mistake> mistakes() {
  const std::string wrong_heads =
      R"({"type": "head_aware_rowwise", "num_heads": 20, "head_dim": 8})";
  const std::string swapped = R"({"type": "head_aware_rowwise", "num_heads": 8, "head_dim": 12})";
  return {{"q, k and v as one piece", fused(), "blk.*.att.Wqkv", R"("rowwise")"},
          {"q, k and v as 20 heads", fused(), "blk.*.att.Wqkv", wrong_heads},
          {"gate and up as one piece", fused(), "blk.*.ff.W13", R"("rowwise")"},
          {"heads and their size swapped", separate(), "blk.*.att.Wq", swapped}};
}

TEST_CASE("a wrong cut of a model that no preset knows is doubted, and the advised rule is not") {
  for (const Mistake& mistake : mistakes()) {
    CAPTURE(mistake.what);
    const auto found = doubts(mistake.tensors, {{mistake.match, mistake.strategy}});
    REQUIRE(found.size() == 1);
    CHECK(found.front().rule == "rules/0");
    CHECK(found.front().place.line == 2);
    CAPTURE(to_string(found.front()));
    CHECK(doubts(mistake.tensors, {{mistake.match, advised(found.front())}}).empty());
  }
}

TEST_CASE("w12 and w13 of a numbered series are not gate and up in one tensor") {
  std::vector<TensorSpec> tensors;
  for (int i = 11; i < 15; ++i) tensors.push_back(spec("w" + std::to_string(i), {8, 16}));
  CHECK(doubts(tensors, {{"**", R"("columnwise")"}}).empty());
  tensors = {spec("w12", {8, 16})};
  const auto doubt = doubts(tensors, {{"**", R"("columnwise")"}});
  REQUIRE(doubt.size() == 1);
  CHECK(doubt[0].message.find("cuts its 16 columns as one matrix") != std::string::npos);
}

TEST_CASE("a cut inside a head is doubted where plain rows do not divide into heads") {
  const auto plain = doubts(separate(), {{"blk.*.att.W{k,v}", R"("rowwise")"}}, kConfig, "tp=3");
  REQUIRE(plain.size() == 2);
  CHECK(plain.front().message.find("at row 11, inside a head") != std::string::npos);
  CHECK(doubts(separate(), {{"blk.*.att.W{k,v}", R"("rowwise")"}}).empty());
}

TEST_CASE("a cut inside a head is doubted where a rule of a fused tensor states other heads") {
  // 96 rows of q and 32 of k and v each, 8 to a head: these rules cut in heads of 4 or 16.
  const std::vector<std::string> wrong = {
      R"({"type": "stacked_qkv", "num_heads": 24, "num_kv_heads": 8, "head_dim": 4})",
      R"({"type": "stacked_qkv", "num_heads": 24, "num_kv_heads": 8, "head_dim": 4,
          "order": "per_kv_group"})",
      R"({"type": "segmented", "segments": [{"num_heads": 24, "head_dim": 4},
          {"num_heads": 8, "head_dim": 4}, {"num_heads": 8, "head_dim": 4}]})"};
  for (const std::string& strategy : wrong) {
    CAPTURE(strategy);
    const auto found = doubts(fused(), {{"blk.*.att.Wqkv", strategy}}, kConfig, "tp=8");
    REQUIRE(found.size() == 1);
    CHECK(found.front().message.find("inside a head") != std::string::npos);
    CHECK(found.front().fix == R"(say "num_heads": 12, "num_kv_heads": 4, "head_dim": 8)");
  }
  const std::string right =
      R"({"type": "stacked_qkv", "num_heads": 12, "num_kv_heads": 4, "head_dim": 8)";
  for (const std::string order : {"concat", "per_kv_group"}) {
    const auto strategy = fmt::format("{}, \"order\": \"{}\"}}", right, order);
    CHECK(doubts(fused(), {{"blk.*.att.Wqkv", strategy}}, kConfig, "tp=4").empty());
  }
}

TEST_CASE("rules of overrides, and of documents without lines, are doubted, too") {
  const ModelConfig config = config_of(kConfig);
  const std::string text = R"({"version": 1, "rules": [{"match": "**", "strategy": "replicate"}],
    "overrides": [{"match": "blk.*.att.Wqkv", "strategy": "rowwise"}]})";
  for (const bool has_lines : {true, false}) {
    const Mapping mapping({{"mapping.json", text, has_lines}});
    const auto tensors = fused();
    const Resolution resolution = resolve(mapping, tensors, &config, over("tp=2"));
    const auto found = doubtful_cuts(resolution, tensors, &config);
    REQUIRE(found.size() == 1);
    CHECK(found.front().rule == "overrides/0");
    CHECK((found.front().place.line > 0) == has_lines);
  }
}

TEST_CASE("heads of two sizes in one layer are doubted without config.json, too") {
  const auto found = doubts(
      separate(),
      {{"blk.*.att.Wq", R"({"type": "head_aware_rowwise", "num_heads": 8, "head_dim": 12})"},
       {"blk.*.att.Wo", R"({"type": "head_aware_columnwise", "num_heads": 12, "head_dim": 8})"}},
      "{}");
  REQUIRE(found.size() == 1);
  CHECK(found.front().message.find("12 heads of 8") != std::string::npos);
}

TEST_CASE("a tensor of three times the rows that its neighbour takes is doubted by its shape") {
  const std::vector<TensorSpec> tensors = {spec("b.0.x.first", {288, 96}),
                                           spec("b.0.x.second", {96, 96})};
  const auto found = doubts(tensors, {{"b.*.x.first", R"("rowwise")"}}, "{}");
  REQUIRE(found.size() == 1);
  CHECK(doubts(tensors, {{"b.*.x.first", advised(found.front())}}, "{}").empty());
  CHECK(doubts({spec("b.0.x.first", {288, 96}), spec("b.0.x.second", {96, 288})},
               {{"b.*.x.first", R"("rowwise")"}}, "{}")
            .empty());
}

TEST_CASE("what init proposes is not doubted") {
  for (const auto& tensors : {separate(), fused()}) {
    const ModelConfig config = config_of(kConfig);
    const std::string text = init_mapping(&config, "", mesh::parse_mesh("tp=2"), tensors).text;
    const Resolution resolution = resolve(mapping_of(text), tensors, &config, {});
    CHECK(doubtful_cuts(resolution, tensors, &config).empty());
  }
}

}  // namespace
}  // namespace shardtool::mapping
