// A broken checkpoint for every rule.
#include "lib/check/rules.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "lib/api/transform.h"
#include "lib/check/coverage.h"
#include "tests/check/broken_checkpoints.h"
#include "tests/golden/models.h"

namespace shardtool::test {
namespace {

using check::CheckRule;
using check::Finding;

std::vector<Broken> all_broken() {
  std::vector<Broken> all;
  for (const auto& family : {broken_containers(), broken_mappings(), broken_shards(),
                             broken_models(), broken_folders(), broken_data()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

/// Rules that no whole checkpoint of this size breaks; each has its own test case.
const std::set<CheckRule> kCasesOfTheirOwn{CheckRule::kPartialOverlap};

TEST_CASE("every rule is broken by some checkpoint, and found there") {
  std::set<CheckRule> provoked = kCasesOfTheirOwn;
  for (const Broken& broken : all_broken()) {
    const check::RuleInfo& info = check::rule_info(broken.rule);
    CAPTURE(info.id);
    CAPTURE(info.title);
    const TempFolder folder;
    const api::CheckReport report = api::check(broken.make(folder));
    const auto found =
        std::find_if(report.findings.begin(), report.findings.end(),
                     [&](const Finding& finding) { return finding.rule == broken.rule; });
    CHECK(found != report.findings.end());
    if (found == report.findings.end()) {
      for (const Finding& other : report.findings) {
        MESSAGE(check::rule_info(other.rule).id << " " << other.tensor << " " << other.message);
      }
      continue;
    }
    CHECK_FALSE(found->message.empty());
    CHECK_FALSE(found->file.empty());
    CHECK(found->severity > check::Severity::kOff);
    provoked.insert(broken.rule);
  }
  for (const check::RuleInfo& info : check::rule_table()) {
    CAPTURE(info.id);
    CHECK(provoked.contains(info.rule));
  }
}

TEST_CASE("holders that share rows without being replicas overlap in part") {
  const Shape shape{6};
  index::HolderSet holders(shape);
  holders.add({index::AxisMap::slice(6, {0, 4})});
  holders.add({index::AxisMap::slice(6, {2, 6})});
  const std::string name = "w";
  const std::vector<check::HeldTensor> held{
      {&name, std::make_shared<const index::HolderSet>(holders)}};
  check::Findings findings{check::Profile("")};
  check::check_coverage(held, "manifest.json", findings);
  REQUIRE(findings.all().size() == 1);
  CHECK(findings.all().front().rule == CheckRule::kPartialOverlap);
}

TEST_CASE("sections that a layout cuts in several ways do not overlap by mistake") {
  using Case = std::pair<std::string, i64>;
  for (const auto& [model, tp] :
       {Case{"gpt_bigcode", 2}, Case{"falcon_multi_query", 2}, Case{"phi3", 4},
        Case{"mamba2_one_group", 2}, Case{"falcon_h1_gated", 2}, Case{"granitemoehybrid", 2}}) {
    CAPTURE(model);
    const TempFolder folder;
    api::SplitOptions options;
    options.source = golden::model_folder(model);
    options.mapping.mesh = mesh::Mesh({{"tp", tp}});
    options.write.output = folder / "out";
    api::split(options);
    CHECK(count_of(api::check(options_for(folder / "out")), CheckRule::kPartialOverlap) == 0);
  }
}

TEST_CASE("tensors of ranks that are missing are not reported one by one") {
  const TempFolder folder;
  api::SplitOptions options;
  options.source = golden::model_folder("mixtral");
  options.mapping.mesh = mesh::parse_mesh("pp=2,ep=2");
  options.ranks = {0};
  options.write.output = folder / "out";
  api::split(options);
  const api::CheckReport report = api::check(options_for(folder / "out"));
  CHECK(count_of(report, CheckRule::kMissingRank) == 3);
  CHECK(report.findings.size() == 3);
}

TEST_CASE("ids are unique, belong to a family and are found in any case") {
  std::set<std::string_view> seen;
  for (const check::RuleInfo& info : check::rule_table()) {
    CAPTURE(info.id);
    CHECK(seen.insert(info.id).second);
    CHECK_FALSE(check::family_of(info.id).empty());
    CHECK_FALSE(info.explanation.empty());
    std::string lower(info.id);
    for (char& c : lower) c = static_cast<char>(std::tolower(c));
    CHECK(check::find_rule(lower) == &info);
  }
  CHECK(check::find_rule("ST9999") == nullptr);
}

TEST_CASE("a good checkpoint has no findings: whole, split, and merged again") {
  const TempFolder folder;
  const auto findings_of = [](api::CheckOptions options) {
    std::string text;
    const api::CheckReport report = api::check(reading(std::move(options)));
    for (const Finding& finding : report.findings) text += finding.message + "\n";
    CHECK(report.bytes_read == report.bytes);
    return text;
  };
  CHECK(findings_of(options_for(SHARDTOOL_SAMPLE)) == "");
  const std::string parts = split_sample(folder);
  CHECK(findings_of(options_for(parts)) == "");
  api::MergeOptions merge;
  merge.sources = {parts};
  merge.write.output = folder / "merged";
  api::merge(merge);
  CHECK(findings_of(options_for(merge.write.output)) == "");
  merge.sources = {SHARDTOOL_SAMPLE};  // never cut: no mapping is recorded
  merge.write.output = folder / "copied";
  api::merge(merge);
  CHECK(findings_of(options_for(merge.write.output)) == "");
  api::CheckOptions mapped = options_for(SHARDTOOL_SAMPLE);
  mapped.mapping.emplace();
  mapped.mapping->mesh = mesh::parse_mesh("tp=2");
  CHECK(findings_of(mapped) == "");
}

}  // namespace
}  // namespace shardtool::test
