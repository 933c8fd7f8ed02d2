#include "cli/print/json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "lib/api/diff.h"
#include "lib/api/inspect.h"
#include "lib/api/transform.h"

namespace shardtool::cli {
namespace {

using index::AxisMap;
using nlohmann::json;

template <class Report>
json document(const Report& report) {
  std::string text;
  JsonWriter out([&text](std::string_view piece) { text += piece; });
  out.begin_object();
  write_fields(out, report);
  out.end_object();
  return json::parse(text);
}

TEST_CASE("a dry run has a plan and nothing written") {
  api::TransformReport report;
  report.plan.tensors = 3;
  report.output = "out";
  const auto dry = document(report);
  CHECK(dry.at("plan").at("tensors") == 3);
  CHECK_FALSE(dry.contains("written"));
  CHECK_FALSE(dry.contains("output"));
  report.written = api::TransformWritten{.bytes = (i64{1} << 53) + 1};
  CHECK(document(report).at("written").at("bytes").get<i64>() == (i64{1} << 53) + 1);
  CHECK(document(report).at("output") == "out");
}

TEST_CASE("a tensor has placement fields only when there is a mesh") {
  api::InspectReport report;
  auto& tensor = report.list.emplace_back();
  tensor.name = "w";
  tensor.shape = {2, 3};
  CHECK_FALSE(document(report).at("tensors").at(0).contains("shards"));
  report.mesh = mesh::Mesh({{"tp", 2}});
  tensor.shards = {{0, 12, {AxisMap::slice(2, {0, 1}), AxisMap::identity(3)}}};
  const auto placed = document(report);
  CHECK(placed.at("mesh").dump() == R"([{"axis":"tp","size":2}])");
  const auto shard = placed.at("tensors").at(0).at("shards").at(0);
  CHECK(shard.at("shape").dump() == "[1,3]");
  CHECK(shard.at("slices").dump() == "[[[0,1]],[[0,3]]]");
}

TEST_CASE("a comparison has warnings only if something was left out") {
  api::DiffReport report;
  CHECK_FALSE(document(report).contains("warnings"));
  report.warnings = {"B: a file"};
  CHECK(document(report).at("warnings").dump() == R"(["B: a file"])");
}

TEST_CASE("a difference names bytes only where data differ") {
  api::DiffReport report;
  report.changed = {{"a", "dtype F32 -> BF16"}, {"b", "data", 5, 0}};
  const auto changed = document(report).at("tensors").at("changed");
  CHECK_FALSE(changed.at(0).contains("first_difference"));
  CHECK(changed.at(1).at("first_difference") == 0);
  CHECK(changed.at(1).at("bytes_differing") == 5);
}

}  // namespace
}  // namespace shardtool::cli
