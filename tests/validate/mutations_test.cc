// The tiers find every fault of the matrix, and the report has the words of its row.
#include "tests/validate/mutations/mutations.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <set>

#include "lib/api/check.h"
#include "lib/base/error.h"

namespace shardtool::test {
namespace {

std::string verdict_of(const api::ValidateReport& report, const std::string& tier) {
  for (const api::ValidateTier& row : report.tiers) {
    if (number_of(row.kind) == tier || to_text(row.kind) == tier) {
      return std::string(to_text(row.outcome));
    }
  }
  return "absent";
}

/// Returns all texts of the report.
std::string text_of(const api::ValidateReport& report) {
  std::string text;
  for (const check::Finding& finding : report.findings) {
    text += fmt::format("{} {} {}\n", check::rule_info(finding.rule).id, finding.message,
                        finding.tensor);
  }
  for (const engine::OddWeight& odd : report.odd_weights) {
    text += fmt::format("odd numbers in {}\n", odd.tensor);
  }
  for (const engine::Fault& fault : report.faults) {
    text += fmt::format("{} in {}, {} '{}': {}\n", to_text(fault.tier), fault.layer, fault.op,
                        fault.value, fault.diagnosis);
  }
  for (const std::string& note : report.notes) text += note + "\n";
  return text;
}

api::ValidateReport validated(const Mutation& mutation) {
  const TempFolder folder;
  const ShardSet shards(split_copy(mutation.model, mutation.mesh, folder));
  mutation.apply(shards);
  api::ValidateOptions options;
  options.sources = {shards.folder()};
  options.reference = model_folder(mutation.model);
  options.resources.threads = 1;
  options.ordered = true;
  if (mutation.options) mutation.options(options);
  return api::validate(options);
}

void check_row(const Mutation& mutation) {
  CAPTURE(mutation.number);
  CAPTURE(mutation.what);
  const api::ValidateReport report = validated(mutation);
  const std::string text = text_of(report);
  CAPTURE(text);
  CHECK(verdict_of(report, "V0") == mutation.signals.v0);
  CHECK(verdict_of(report, "V1") == mutation.signals.v1);
  CHECK(verdict_of(report, "V2") == mutation.signals.v2);
  CHECK(verdict_of(report, "ordered f32") == mutation.signals.f32);
  CHECK(verdict_of(report, "ordered bf16") == mutation.signals.bf16);
  CHECK(to_text(report.outcome) == mutation.signals.all);
  for (const std::string& words : mutation.words) {
    CAPTURE(words);
    CHECK(text.find(words) != std::string::npos);
  }
}

void check_rows(const std::vector<Mutation>& mutations) {
  for (const Mutation& mutation : mutations) check_row(mutation);
}

TEST_CASE("faults of attention are caught and named") {
  check_rows(attention_mutations());
}

TEST_CASE("faults of feed-forward layers, experts, embedding and head are caught and named") {
  check_rows(feed_forward_mutations());
}

TEST_CASE("faults of single numbers and of bytes are caught and named") {
  check_rows(value_mutations());
}

TEST_CASE("faults of headers and manifests are caught and named") {
  check_rows(header_mutations());
}

TEST_CASE("faults that a family's own parts can have are caught and named") {
  check_rows(family_mutations());
}

TEST_CASE("faults of convolutions and recurrences are caught and named") {
  check_rows(recurrence_mutations());
}

TEST_CASE("faults of encoders and of attention to them are caught and named") {
  check_rows(encoder_mutations());
}

TEST_CASE("faults of fused groups of heads are caught and named") {
  check_rows(fused_mutations());
}

TEST_CASE("faults of the families that came last are caught and named") {
  check_rows(rare_part_mutations());
}

TEST_CASE("faults of towers that read images are caught and named") {
  check_rows(tower_mutations());
}

TEST_CASE("what leaves the function as it is passes, and is named where bytes differ") {
  check_rows(benign_mutations());
}

TEST_CASE("rows that shards of ours cannot have say why") {
  std::string text;
  for (const Untested& row : untested_mutations()) {
    text += fmt::format(" {} ({}): {};", row.number, row.what, row.reason);
  }
  std::cout << "SKIPPED:" << text << std::endl;
}

TEST_CASE("every row of the matrix stands once, tested or with its reason") {
  std::set<std::string> numbers;
  const auto add = [&](const std::string& number) {
    CAPTURE(number);
    CHECK(numbers.insert(number).second);
  };
  for (const auto& rows :
       {attention_mutations(), feed_forward_mutations(), value_mutations(), header_mutations(),
        family_mutations(), recurrence_mutations(), encoder_mutations(), fused_mutations(),
        rare_part_mutations(), tower_mutations(), benign_mutations()}) {
    for (const Mutation& row : rows) add(row.number);
  }
  for (const Untested& row : untested_mutations()) add(row.number);
  add("38");  // lost_exchange_test.cc
  constexpr int kRows = 76;
  for (int i = 0; i < kRows; ++i) CHECK(numbers.count(fmt::format("{:02}", i)) == 1);
}

TEST_CASE("shards in many files, with their tensors in any order, pass") {
  const TempFolder folder;
  api::SplitOptions split;
  split.source = model_folder("prototype");
  split.mapping.mesh = mesh::parse_mesh("tp=2");
  constexpr i64 kSmall = 60'000;
  split.write.max_file_size = kSmall;
  split.write.output = folder / "parts";
  api::split(split);
  api::ValidateOptions options;
  options.sources = {split.write.output};
  for (const char* reference : {"prototype", "prototype in two files"}) {
    options.reference = model_folder(reference);
    const api::ValidateReport report = api::validate(options);
    CHECK(report.passes());
    CHECK(report.reordered == 0);
  }
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(split.write.output)) {
    files += entry.path().extension() == ".safetensors" ? 1 : 0;
  }
  CHECK(files > 4);
}

/// Returns true if a row changes stored bytes, instead of only metadata or the reference.
bool changes_bytes(const Mutation& mutation) {
  const TempFolder before, after;
  const ShardSet shards(split_copy(mutation.model, mutation.mesh, before));
  const ShardSet changed(split_copy(mutation.model, mutation.mesh, after));
  mutation.apply(changed);
  for (const std::string& name : shards.tensors()) {
    for (const i64 rank : shards.ranks_of(name)) {
      if (shards.read(name, rank).bytes != changed.read(name, rank).bytes) return true;
    }
  }
  return false;
}

TEST_CASE("check finds every change of bytes that validate lets pass, by its hash") {
  int changes = 0;
  for (const Mutation& mutation : benign_mutations()) {
    if (mutation.number == "B2" || !changes_bytes(mutation)) continue;
    CAPTURE(mutation.number);
    const TempFolder folder;
    const ShardSet shards(split_copy(mutation.model, mutation.mesh, folder));
    mutation.apply(shards);
    api::CheckOptions options;
    options.sources = {shards.folder()};
    options.data.emplace();
    CHECK(api::check(options).errors > 0);
    // Only padding may change unnoticed: the reference has none.
    api::ValidateOptions function;
    function.sources = {shards.folder()};
    function.reference = model_folder(mutation.model);
    const auto report = api::validate(function);
    CHECK(report.passes());
    REQUIRE(report.bytes.has_value());
    CHECK((report.bytes->differing > 0) == (mutation.number != "47"));
    ++changes;
  }
  CHECK(changes == 3);  // 41, 42 and 47
}

}  // namespace
}  // namespace shardtool::test
