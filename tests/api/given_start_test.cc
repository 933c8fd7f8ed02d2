// Graphs of one's own: a model that begins at an input instead of an embedding, so that the first
// layer has no weights, and one with a value that nothing reads.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "lib/api/catalogue/graphs.h"
#include "lib/api/validate.h"
#include "tests/support/checkpoint_files.h"

namespace shardtool::api {
namespace {

constexpr const char* kTwoLayers = R"({
  "version": 1, "family": "two_layers", "description": "two layers", "source": "this test",
  "model_types": ["two_layers"],
  "sizes": {"layers": 1, "vocab": 4, "in": 4, "hidden": 6},
  "start": [{"op": "given", "out": "x", "size": "in"}],
  "blocks": [{"name": "hidden", "ops": [
    {"op": "linear", "in": "x", "out": "a", "weight": "up", "rows": "hidden", "columns": "in"},
    {"op": "act", "in": "a", "out": "x", "kind": "relu"}]}],
  "end": [{"op": "logits", "in": "x", "out": "y", "weight": "down", "rows": "in",
    "columns": "hidden"}]
})";
constexpr const char* kTwoLayersMapping =
    R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}], "rules": [
  {"match": "up", "strategy": "column_parallel"}, {"match": "down", "strategy": "row_parallel"}]})";

TEST_CASE("a model that begins at a given input validates") {
  const test::TempFolder folder;
  test::write_checkpoint(folder / "whole",
                         {{"up", test::numbered_tensor("up", Dtype::kBF16, {6, 4})},
                          {"down", test::numbered_tensor("down", Dtype::kBF16, {4, 6})}});
  folder.write("whole/config.json", R"({"model_type": "two_layers"})");
  SplitOptions split_options;
  split_options.source = folder / "whole";
  split_options.mapping.path = folder.write("mapping.json", kTwoLayersMapping);
  split_options.write.output = folder / "parts";
  split(split_options);
  ValidateOptions options;
  options.sources = {folder / "parts"};
  options.graph = read_graph(folder.write("graph.json", kTwoLayers));
  const ValidateReport report = validate(options);
  CHECK(report.passes());
  CHECK(report.coverage == 100);
}

/// Splits a model of two layers with a third matrix, whose product is read only if `is_read`.
/// Changes one of the matrix's elements on rank 1 and validates.
ValidateReport damaged_probe(bool is_read) {
  const std::string first = R"({"op": "linear", "in": "x", "out": "a", "weight": "up")";
  std::string graph = kTwoLayers;
  const std::string probe = is_read ? "x" : "probe";
  graph.insert(graph.find(first), R"({"op": "linear", "in": "x", "out": ")" + probe +
                                      R"(", "weight": "side", "rows": "in", "columns": "in"}, )");
  const test::TempFolder folder;
  test::write_checkpoint(folder / "whole",
                         {{"up", test::numbered_tensor("up", Dtype::kBF16, {6, 4})},
                          {"side", test::numbered_tensor("side", Dtype::kBF16, {4, 4})},
                          {"down", test::numbered_tensor("down", Dtype::kBF16, {4, 6})}});
  folder.write("whole/config.json", R"({"model_type": "two_layers"})");
  SplitOptions split_options;
  split_options.source = folder / "whole";
  split_options.mapping.path =
      folder.write("mapping.json", R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
                          "rules": [{"match": "**", "strategy": "rowwise"}]})");
  split_options.write.output = folder / "parts";
  split(split_options);
  const std::string file = folder / "parts/model-rank-1-part-0.safetensors";
  test::Tensors tensors = test::read_tensors(folder / "parts", "model-rank-1");
  const std::string before(tensors.at("side").bytes.begin(), tensors.at("side").bytes.end());
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  std::string bytes = text.str();
  const size_t at = bytes.find(before);
  REQUIRE(at != std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 2);
  folder.write("parts/model-rank-1-part-0.safetensors", bytes);
  ValidateOptions options;
  options.sources = {folder / "parts"};
  options.reference = folder / "whole";
  options.graph = read_graph(folder.write("graph.json", graph));
  return validate(options);
}

TEST_CASE("a weight whose product nothing reads is judged by its bytes, and not as tested") {
  const ValidateReport unread = damaged_probe(false);
  CHECK_FALSE(unread.passes());
  CHECK(unread.coverage < 100);
  for (const ValidateTier& tier : unread.tiers) {
    const bool is_of_bytes = tier.kind == engine::TierKind::kBytes;
    CHECK((tier.outcome == engine::Outcome::kFail) == is_of_bytes);
  }
  const ValidateReport read = damaged_probe(true);
  CHECK_FALSE(read.passes());
  CHECK(read.coverage == 100);
}

}  // namespace
}  // namespace shardtool::api
