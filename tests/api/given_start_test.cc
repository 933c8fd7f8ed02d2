// A graph whose model begins at an input instead of an embedding: the first layer has no weights.
#include <doctest/doctest.h>

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

}  // namespace
}  // namespace shardtool::api
