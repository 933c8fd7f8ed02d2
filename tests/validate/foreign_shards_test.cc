// Shards without a manifest: a mapping and the whole model define their layout.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "tests/validate/mutations/mutations.h"

namespace shardtool::test {
namespace {

const std::string kNorm = "model.layers.0.input_layernorm.weight";

api::ValidateOptions options_for(const ShardSet& shards, const std::string& mesh) {
  api::ValidateOptions options;
  options.sources = {shards.folder()};
  options.reference = model_folder("prototype");
  options.mapping.mesh = mesh::parse_mesh(mesh);
  options.resources.threads = 1;
  return options;
}

/// Validates shards whose manifest has been deleted.
api::ValidateReport validated(const ShardSet& shards, const std::string& mesh) {
  std::filesystem::remove(shards.folder() + "/manifest.json");
  return api::validate(options_for(shards, mesh));
}

bool has_finding(const api::ValidateReport& report, check::CheckRule rule,
                 const std::string& tensor) {
  return std::ranges::any_of(report.findings, [&](const check::Finding& finding) {
    return finding.rule == rule && finding.tensor == tensor;
  });
}

TEST_CASE("shards without a manifest pass on every mesh that their mapping names") {
  for (const char* mesh : {"tp=4", "pp=3,tp=2", "ep=2,tp=2"}) {
    CAPTURE(mesh);
    const TempFolder folder;
    const auto report = validated(ShardSet(split_copy("prototype", mesh, folder)), mesh);
    CHECK(report.passes());
    CHECK(report.coverage == 100);
    CHECK(report.tiers.front().kind == engine::TierKind::kHeaders);
    CHECK(std::ranges::any_of(report.notes, [](const std::string& note) {
      return note.find("no manifest") != std::string::npos;
    }));
  }
}

TEST_CASE("faults of shards without a manifest have the words of those with one") {
  const TempFolder folder;
  const ShardSet shards(split_copy("prototype", "tp=4", folder));
  shards.exchange("model.layers.0.self_attn.o_proj.weight", 1, 2);
  const auto report = validated(shards, "tp=4");
  CHECK(report.outcome == engine::Outcome::kFail);
  REQUIRE(!report.faults.empty());
  CHECK(report.faults.front().diagnosis.find("rank 1 holds the shard of rank 2") !=
        std::string::npos);
}

TEST_CASE("shards that the mapping does not cut so are named, and not run") {
  const TempFolder folder;
  const ShardSet shards(split_copy("prototype", "tp=2", folder));
  const auto report = validated(shards, "tp=4");
  CHECK(report.outcome == engine::Outcome::kFail);
  CHECK(report.tiers.at(1).outcome == engine::Outcome::kNotRun);
  CHECK(has_finding(report, check::CheckRule::kMissingRank, ""));
  CHECK(
      has_finding(report, check::CheckRule::kRankShape, "model.layers.0.self_attn.o_proj.weight"));
}

TEST_CASE("a tensor that a rank lacks, or has under another name, is named") {
  const TempFolder folder;
  const ShardSet shards(split_copy("prototype", "tp=4", folder));
  shards.edit_header(1, [](nlohmann::json& header) {
    header["model.layers.0.other.weight"] = header.at(kNorm);
    header.erase(kNorm);
  });
  const auto report = validated(shards, "tp=4");
  CHECK(report.outcome == engine::Outcome::kFail);
  CHECK(report.tiers.at(1).outcome == engine::Outcome::kNotRun);
  CHECK(has_finding(report, check::CheckRule::kShardMissing, kNorm));
  CHECK(has_finding(report, check::CheckRule::kMixedCheckpoints, "model.layers.0.other.weight"));
}

TEST_CASE("shards without a manifest need a mapping and the whole model") {
  const TempFolder folder;
  const ShardSet shards(split_copy("prototype", "tp=4", folder));
  std::filesystem::remove(shards.folder() + "/manifest.json");
  auto without_mapping = options_for(shards, "tp=4");
  without_mapping.mapping.mesh.reset();
  auto without_reference = options_for(shards, "tp=4");
  without_reference.reference.clear();
  for (const auto& options : {without_mapping, without_reference}) {
    CHECK_THROWS_WITH_AS(api::validate(options),
                         "shards without a manifest need --mapping and --reference", Error);
  }
}

}  // namespace
}  // namespace shardtool::test
