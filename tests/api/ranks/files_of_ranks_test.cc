// A rank's file of an output, opened without its manifest: what reads tensors refuses parts.
#include <doctest/doctest.h>

#include <filesystem>

#include "lib/api/catalogue/graph_skeleton.h"
#include "lib/api/catalogue/presets.h"
#include "lib/api/diff.h"
#include "lib/api/explain.h"
#include "lib/api/inspect.h"
#include "lib/api/plan.h"
#include "lib/api/transform.h"
#include "lib/api/validate.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;

const std::string kWholeSample = SHARDTOOL_SOURCE_DIR "/samples/tiny-llama";

/// The sample in plain files for two ranks.
struct TwoRanks {
  TempFolder folder;
  std::string path = folder / "parts";
  TwoRanks() {
    SplitOptions options;
    options.source = kWholeSample;
    options.mapping.mesh = mesh::parse_mesh("tp=2");
    options.write.output = path;
    split(options);
  }
  std::string file_of(int rank) const {
    return path + "/model-rank-" + std::to_string(rank) + "-part-0.safetensors";
  }
};

TEST_CASE("a rank's file alone is no model for any command that needs whole tensors") {
  const TwoRanks parts;
  const std::string file = parts.file_of(0);
  MergeOptions merged;
  merged.write.output = parts.folder / "out";
  merged.sources = {file};
  CHECK_ERROR(kCoverage, merge(merged));
  merged.sources = {file, parts.file_of(1)};
  CHECK_ERROR(kCoverage, merge(merged));
  SplitOptions again;
  again.source = file;
  again.mapping.mesh = mesh::parse_mesh("tp=2");
  again.write.output = parts.folder / "out";
  CHECK_ERROR(kCoverage, split(again));
  PlanOptions planned;
  planned.sources = {file};
  CHECK_ERROR(kCoverage, make_plan(planned));
  ExplainOptions explained;
  explained.source = file;
  explained.tensor = "lm_head.weight";
  explained.mapping.mesh = mesh::parse_mesh("tp=2");
  CHECK_ERROR(kCoverage, explain(explained));
  ValidateOptions proved;
  proved.sources = {parts.path};
  proved.reference = file;
  CHECK_ERROR(kCoverage, validate(proved));
  InitOptions begun;
  begun.source = file;
  CHECK_ERROR(kCoverage, init_mapping(begun));
  CHECK_ERROR(kCoverage, graph_skeleton(file));
  CHECK_FALSE(fs::exists(parts.folder / "out"));
}

TEST_CASE("the help of a rank's file alone works: its folder is the whole model") {
  const TwoRanks parts;
  MergeOptions merged;
  merged.sources = {parts.path};
  merged.write.output = parts.folder / "out";
  merge(merged);
  DiffOptions both;
  both.a = kWholeSample;
  both.b = merged.write.output;
  CHECK(diff(both).equal);
}

TEST_CASE("a folder with one rank's file and no manifest is no model") {
  const TwoRanks parts;
  fs::create_directories(parts.folder / "alone");
  fs::copy_file(parts.file_of(1), parts.folder / "alone/model.safetensors");
  MergeOptions merged;
  merged.sources = {parts.folder / "alone"};
  merged.write.output = parts.folder / "out";
  CHECK_ERROR(kCoverage, merge(merged));
}

TEST_CASE("inspect shows a rank's file, and says what it is") {
  const TwoRanks parts;
  InspectOptions options;
  options.source = parts.file_of(0);
  const InspectReport report = inspect(options);
  CHECK(report.format == "safetensors of single ranks");
  CHECK(report.tensors == 21);
}

}  // namespace
}  // namespace shardtool::api
