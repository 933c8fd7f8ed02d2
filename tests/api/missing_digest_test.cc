// A tensor that a manifest's shards cover must have a digest, or the output is not trusted.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/api/check.h"
#include "lib/api/inspect.h"
#include "lib/api/transform.h"
#include "lib/base/shell.h"
#include "lib/format/checkpoint.h"
#include "lib/format/manifest/manifest_rules.h"
#include "lib/index/coverage.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::TempFolder;

constexpr const char* kRowsMapping =
    R"({"version": 1, "mesh": [{"axis": "dp", "size": 2}, {"axis": "tp", "size": 3}],
  "rules": [{"match": "w", "strategy": {"type": "rowwise", "over": "tp"}}, {"match": "n", "strategy": "replicate"},
            {"match": "v", "strategy": {"type": "columnwise", "over": ["dp", "tp"]}}]})";

struct UndigestedModel {
  TempFolder folder;
  UndigestedModel() {
    test::Tensors tensors;
    tensors["w"] = test::numbered_tensor("w", Dtype::kU8, {64, 4});
    tensors["v"] = test::numbered_tensor("v", Dtype::kF32, {3, 12});
    tensors["n"] = test::numbered_tensor("n", Dtype::kU8, {32});
    test::write_checkpoint(folder / "whole", tensors);
    folder.write("mapping.json", kRowsMapping);
  }
  std::string parts(const std::string& name, std::vector<i64> ranks = {}) const {
    SplitOptions options;
    options.source = folder / "whole";
    options.mapping.path = folder / "mapping.json";
    options.ranks = std::move(ranks);
    options.write.output = folder / name;
    split(options);
    return options.write.output;
  }
};

void drop_digest(const std::string& parts, const std::string& tensor) {
  const std::string path = parts + "/manifest.json";
  nlohmann::json manifest = nlohmann::json::parse(std::ifstream(path));
  REQUIRE(manifest.at("tensors").at(tensor).erase("digest") == 1);
  std::ofstream(path) << manifest.dump();
}

i64 undigested(const CheckReport& report) {
  return std::ranges::count(report.findings, check::CheckRule::kNoDigest, &check::Finding::rule);
}

CheckReport checked(std::vector<std::string> sources) {
  CheckOptions options;
  options.sources = std::move(sources);
  return check(options);
}

TEST_CASE("an entry without a digest is refused by merge and reshard, found and warned of") {
  const UndigestedModel model;
  for (const std::string tensor : {"n", "v", "w"}) {
    CAPTURE(tensor);
    const std::string parts = model.parts("parts without " + tensor);
    drop_digest(parts, tensor);
    MergeOptions merging;
    merging.sources = {parts};
    merging.write.output = model.folder / "merged";
    ReshardOptions resharding;
    resharding.sources = {parts};
    resharding.to.mesh = mesh::parse_mesh("dp=1,tp=2");
    resharding.write.output = model.folder / "resharded";
    for (const auto& refused : {testing::error_of([&] { merge(merging); }),
                                testing::error_of([&] { reshard(resharding); })}) {
      REQUIRE(refused.has_value());
      CHECK(refused->code() == ErrorCode::kManifestInvalid);
      CHECK(refused->tensor_name() == tensor);
      CHECK(refused->help_lines().at(0).find("shardtool diff SOURCE " + path_argument(parts)) !=
            std::string::npos);
    }
    const CheckReport report = checked({parts});
    REQUIRE(undigested(report) == 1);
    CHECK(report.errors == 1);
    const auto found =
        std::ranges::find(report.findings, check::CheckRule::kNoDigest, &check::Finding::rule);
    CHECK(found->tensor == tensor);
    InspectOptions inspecting;
    inspecting.source = parts;
    const auto warnings = inspect(inspecting).warnings;
    REQUIRE(warnings.size() == 1);
    CHECK(warnings.front().find("1 tensor has no digest") != std::string::npos);
    CHECK(warnings.front().find("'" + tensor + "'") != std::string::npos);
  }
}

TEST_CASE("split leaves out the digest exactly of tensors that its ranks do not cover") {
  const UndigestedModel model;
  int run = 0;
  CHECK(rc::check("no digest == not covered", [&] {
    const auto set = *rc::gen::inRange<i64>(1, 1 << 6);
    std::vector<i64> ranks;
    for (i64 rank = 0; rank < 6; ++rank) {
      if ((set >> rank & 1) != 0) ranks.push_back(rank);
    }
    const std::string parts = model.parts("parts " + std::to_string(run++), ranks);
    const auto opened = format::open_checkpoint(parts);
    RC_ASSERT(format::without_digest(*opened.manifest).empty());
    for (const auto& tensor : opened.manifest->tensors) {
      RC_ASSERT(tensor.digest.has_value() == index::covers(*tensor.holders));
    }
    RC_ASSERT(undigested(checked({parts})) == 0);
  }));
}

TEST_CASE("outputs of --ranks that cover a tensor only together need no digest of it") {
  const UndigestedModel model;
  const std::string first = model.parts("first", {0, 1, 3});
  const std::string second = model.parts("second", {2, 4, 5});
  CHECK(undigested(checked({first, second})) == 0);
  MergeOptions merging;
  merging.sources = {first, second};
  merging.write.output = model.folder / "merged";
  CHECK_NOTHROW(merge(merging));
  InspectOptions inspecting;
  inspecting.source = first;
  CHECK(inspect(inspecting).warnings.empty());
}

}  // namespace
}  // namespace shardtool::api
