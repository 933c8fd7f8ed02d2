// Layouts of one mapping by name: shards go from one to another, directly or by a plan file.
#include <doctest/doctest.h>

#include <fstream>

#include "lib/api/plan.h"
#include "lib/api/transform.h"
#include "lib/api/validate.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::folder_content;
using test::TempFolder;

const std::string kTinyLlama = SHARDTOOL_SOURCE_DIR "/samples/tiny-llama";
const std::string kFsdpMapping = SHARDTOOL_SOURCE_DIR "/samples/mappings/llama-fsdp4-tp2.json";

/// The sample model in both layouts of FSDP over another mesh than the mapping's.
struct BothLayouts {
  TempFolder folder;
  std::string param = split_by("param");
  std::string compute = split_by("compute");

  std::string split_by(const std::string& axes) const {
    SplitOptions options;
    options.source = kTinyLlama;
    options.mapping.path = kFsdpMapping;
    options.mapping.layout = axes;
    options.mapping.mesh = mesh::parse_mesh("fsdp=2,tp=2");
    options.write.output = folder / axes;
    split(options);
    return options.write.output;
  }
  PlanOptions plan_of(const std::string& source) const {
    PlanOptions options;
    options.sources = {source};
    options.recipe = true;
    return options;
  }
  /// Plans, writes the plan, applies it, and returns the output.
  std::string applied(const PlanOptions& options, const std::string& name) const {
    std::ofstream(folder / "plan.json") << sealed(
        R"({"format_version":"1.0","tool":{"name":"shardtool","version":")" SHARDTOOL_VERSION
        R"("},"command":"plan","apply":)" +
        make_plan(options).recipe);
    ReshardOptions by_plan;
    by_plan.plan = folder / "plan.json";
    by_plan.write.output = folder / name;
    reshard(by_plan);
    return by_plan.write.output;
  }
};

TEST_CASE("reshard to a named layout is the split by that layout, both ways") {
  const BothLayouts both;
  const std::tuple<std::string, std::string, std::string> ways[] = {
      {both.param, "compute", both.compute}, {both.compute, "param", both.param}};
  for (const auto& [from, to, expected] : ways) {
    ReshardOptions options;
    options.sources = {from};
    options.to_layout = to;
    options.write.output = both.folder / ("to-" + to);
    reshard(options);
    CHECK(folder_content(options.write.output) == folder_content(expected));
  }
}

TEST_CASE("a layout that the mapping lacks is refused with those that it has") {
  const BothLayouts both;
  ReshardOptions options;
  options.sources = {both.param};
  options.to_layout = "computed";
  options.write.output = both.folder / "none";
  CHECK_ERROR(kUnknownName, reshard(options));
  options.to_layout = "computed.json";
  CHECK_ERROR(kFileMissing, reshard(options));
}

TEST_CASE("a plan between two layouts of one mapping is applied") {
  const BothLayouts both;
  PlanOptions options = both.plan_of(both.param);
  options.to = "compute";
  CHECK(folder_content(both.applied(options, "one")) == folder_content(both.compute));
  options.from = "param";
  CHECK(folder_content(both.applied(options, "two")) == folder_content(both.compute));
}

TEST_CASE("a plan takes the axes of a destination's mapping") {
  const BothLayouts both;
  PlanOptions options = both.plan_of(both.param);
  options.to = kFsdpMapping;
  options.to_mesh = mesh::parse_mesh("fsdp=2,tp=2");
  options.mapping.layout = "compute";
  options.mapping_is_given = true;
  CHECK(folder_content(both.applied(options, "out")) == folder_content(both.compute));
}

TEST_CASE("a plan that begins elsewhere than at the shards cannot be applied") {
  const BothLayouts both;
  PlanOptions options = both.plan_of(both.compute);
  options.from = "param";
  options.to = "compute";
  CHECK_ERROR(kUsage, make_plan(options));
  PlanOptions of_whole = both.plan_of(kTinyLlama);
  of_whole.mapping.path = kFsdpMapping;
  of_whole.mapping_is_given = true;
  of_whole.from = "param";
  of_whole.to = "compute";
  CHECK_ERROR(kUsage, make_plan(of_whole));
}

TEST_CASE("shards of another layout than the first one validate") {
  const BothLayouts both;
  ValidateOptions options;
  options.sources = {both.compute};
  options.quick = true;
  CHECK(validate(options).passes());
}

}  // namespace
}  // namespace shardtool::api
