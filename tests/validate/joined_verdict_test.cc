// Shares of a validation, each of some layers and with no connection to the others, join to the
// report of one run of all layers.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "lib/api/transform.h"
#include "lib/api/validate.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::TempFolder;

const std::string kTinyLlama = SHARDTOOL_SOURCE_DIR "/samples/tiny-llama";

struct Case {
  std::string what;
  std::string mesh;
  std::string layout;  ///< of the output: "plain", "vllm", ...
  bool has_reference = true;
  std::string damaged = {};  ///< tensor with one wrong bit in its last shard; empty: none
};

std::string split_in(const TempFolder& folder, const Case& one) {
  SplitOptions options;
  options.source = kTinyLlama;
  options.mapping.mesh = mesh::parse_mesh(one.mesh);
  options.write.layout = one.layout;
  options.write.output = folder / "parts";
  split(options);
  return options.write.output;
}

ValidateOptions options_of(const std::string& parts, bool has_reference) {
  ValidateOptions options;
  options.sources = {parts};
  if (has_reference) options.reference = kTinyLlama;
  options.resources.threads = 1;
  return options;
}

ValidateReport run_share(ValidateOptions options, const std::string& verdicts, const Share& share) {
  options.share = share;
  options.verdicts = verdicts;
  return validate(options);
}

std::vector<std::tuple<std::string, std::string, i64>> places(
    const std::vector<engine::Fault>& faults) {
  std::vector<std::tuple<std::string, std::string, i64>> all;
  for (const engine::Fault& fault : faults) {
    if (fault.tier == engine::TierKind::kField) {
      all.emplace_back(fault.layer + " " + fault.op, fault.value, fault.rank);
    }
  }
  return all;
}

/// The parts of a report that do not depend on the numbers of the runs in floats.
void check_same(const ValidateReport& joined, const ValidateReport& alone) {
  CHECK(joined.outcome == alone.outcome);
  CHECK(joined.digest == alone.digest);
  CHECK(joined.coverage == alone.coverage);
  CHECK(joined.untested == alone.untested);
  CHECK(joined.findings == alone.findings);
  CHECK(joined.odd_weights == alone.odd_weights);
  CHECK(places(joined.faults) == places(alone.faults));
  CHECK(joined.reordered == alone.reordered);
  REQUIRE(joined.bytes.has_value() == alone.bytes.has_value());
  if (alone.bytes) {
    CHECK(joined.bytes->parts == alone.bytes->parts);
    CHECK(joined.bytes->differing == alone.bytes->differing);
    CHECK(joined.bytes->tensors == alone.bytes->tensors);
  }
  REQUIRE(joined.tiers.size() == alone.tiers.size());
  for (size_t i = 0; i < alone.tiers.size(); ++i) {
    CHECK(joined.tiers[i].kind == alone.tiers[i].kind);
    CHECK(joined.tiers[i].outcome == alone.tiers[i].outcome);
    CHECK(joined.tiers[i].checked == alone.tiers[i].checked);
    if (alone.tiers[i].kind == engine::TierKind::kF64) continue;
    CHECK(joined.tiers[i].mismatches == alone.tiers[i].mismatches);
  }
  REQUIRE(joined.collectives.size() == alone.collectives.size());
  for (size_t i = 0; i < alone.collectives.size(); ++i) {
    CHECK(joined.collectives[i].tier == alone.collectives[i].tier);
    CHECK(joined.collectives[i].axis == alone.collectives[i].axis);
    CHECK(joined.collectives[i].predicted_count == alone.collectives[i].predicted_count);
    CHECK(joined.collectives[i].counted == alone.collectives[i].counted);
    CHECK(joined.collectives[i].counted_elements == alone.collectives[i].counted_elements);
  }
}

TEST_CASE("shares join to the report of one run, whatever their number") {
  const std::vector<Case> cases = {
      {"two devices", "tp=2", "plain"},
      {"stages", "pp=2,tp=2", "plain"},
      {"an engine's layout", "tp=2", "vllm"},
      {"against the manifest", "tp=2", "plain", false},
      {"a wrong bit in a layer", "tp=2", "plain", true, "model.layers.1.mlp.down_proj.weight"},
      {"a wrong bit in a stage", "pp=2,tp=2", "plain", true, "model.layers.1.mlp.up_proj.weight"},
      {"a wrong bit in the table", "tp=2", "plain", true, "model.embed_tokens.weight"},
      {"a wrong bit, without the model", "tp=2", "plain", false, "model.norm.weight"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.what);
    const TempFolder folder;
    const std::string parts = split_in(folder, one);
    if (!one.damaged.empty()) test::flip_bit_of_last_shard(parts, one.damaged);
    const ValidateOptions options = options_of(parts, one.has_reference);
    const ValidateReport alone = validate(options);
    CHECK(alone.passes() == one.damaged.empty());
    for (const int shares : {1, 2, 3, 7}) {
      CAPTURE(shares);
      const std::string verdicts = folder / fmt::format("verdicts-{}", shares);
      bool all_pass = true;
      for (int number = shares - 1; number >= 0; --number) {  // any order
        all_pass = run_share(options, verdicts, {number, shares}).passes() && all_pass;
        CHECK(std::ssize(missing_verdicts(verdicts)) == number);
      }
      CHECK(all_pass == alone.passes());
      const ValidateReport joined = joined_verdict(verdicts);
      CHECK(joined.joined == shares);
      check_same(joined, alone);
    }
  }
}

TEST_CASE("the digest is that of the model, whatever the layout") {
  std::set<std::string> digests;
  for (const char* mesh : {"tp=1", "tp=2", "tp=4", "tp=8", "pp=2", "pp=2,tp=2", "dp=2,tp=2"}) {
    const TempFolder folder;
    for (const bool has_reference : {true, false}) {
      const std::string parts =
          has_reference ? split_in(folder, {"", mesh, "plain"}) : folder / "parts";
      const ValidateReport report = validate(options_of(parts, has_reference));
      CHECK(report.passes());
      digests.insert(report.digest);
    }
  }
  CHECK(digests.size() == 1);
}

TEST_CASE("a share reads its layers only, and all shares read what one run reads") {
  const TempFolder folder;
  const ValidateOptions options = options_of(split_in(folder, {"", "tp=2", "plain"}), true);
  const i64 alone = validate(options).bytes_read;
  i64 all = 0, most = 0;
  for (int number = 0; number < 3; ++number) {
    const i64 bytes = run_share(options, folder / "verdicts", {number, 3}).bytes_read;
    all += bytes;
    most = std::max(most, bytes);
  }
  CHECK(all == alone);
  CHECK(most < alone * 2 / 3);
}

TEST_CASE("a validation is not joined before all of its shares have ended") {
  const TempFolder folder;
  const ValidateOptions options = options_of(split_in(folder, {"", "tp=2", "plain"}), true);
  const std::string verdicts = folder / "verdicts";
  CHECK_FALSE(has_verdicts(verdicts));
  run_share(options, verdicts, {1, 3});
  CHECK(has_verdicts(verdicts));
  CHECK(missing_verdicts(verdicts) == std::vector<int>{0, 2});
  CHECK_ERROR(kShareMissing, joined_verdict(verdicts));
  run_share(options, verdicts, {0, 3});
  run_share(options, verdicts, {1, 3});  // again does no harm
  run_share(options, verdicts, {2, 3});
  CHECK(joined_verdict(verdicts).passes());
}

TEST_CASE("shares of other validations are refused") {
  const TempFolder folder;
  const std::string parts = split_in(folder, {"", "tp=2", "plain"});
  const ValidateOptions options = options_of(parts, true);
  const std::string verdicts = folder / "verdicts";
  run_share(options, verdicts, {0, 2});
  CHECK_ERROR(kOtherRun, run_share(options, verdicts, {1, 3}));
  ValidateOptions other = options;
  other.seed = 2;
  CHECK_ERROR(kOtherRun, run_share(other, verdicts, {1, 2}));
  CHECK_ERROR(kOtherRun, run_share(options_of(parts, false), verdicts, {1, 2}));
  test::flip_bit_of_last_shard(parts, "model.norm.weight");
  CHECK_ERROR(kOtherRun, run_share(options, verdicts, {1, 2}));
}

TEST_CASE("a record that was cut or changed is refused") {
  const TempFolder folder;
  const ValidateOptions options = options_of(split_in(folder, {"", "tp=2", "plain"}), true);
  const std::string verdicts = folder / "verdicts";
  run_share(options, verdicts, {0, 1});
  const std::string path = verdicts + "/0-of-1.verdict";
  const auto bytes = std::filesystem::file_size(path);
  for (const auto cut : {std::uintmax_t{0}, std::uintmax_t{20}, bytes - 1}) {
    std::filesystem::resize_file(path, cut);
    CHECK_ERROR(kManifestInvalid, joined_verdict(verdicts));
  }
}

TEST_CASE("the required coverage is judged when the shares are joined") {
  const TempFolder folder;
  ValidateOptions options = options_of(split_in(folder, {"", "tp=2", "plain"}), true);
  options.require_coverage = 100;
  CHECK(run_share(options, folder / "verdicts", {0, 2}).passes());
  CHECK(run_share(options, folder / "verdicts", {1, 2}).passes());
  CHECK(joined_verdict(folder / "verdicts").passes());
}

TEST_CASE("a golden file is of the whole model") {
  const TempFolder folder;
  ValidateOptions options = options_of(split_in(folder, {"", "tp=2", "plain"}), true);
  options.golden = "golden.json";
  CHECK_ERROR(kUsage, run_share(options, folder / "verdicts", {0, 2}));
}

}  // namespace
}  // namespace shardtool::api
