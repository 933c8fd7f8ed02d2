// validate reports whether the shards have the reference's bytes, beside the verdict.
#include <doctest/doctest.h>

#include <mutex>

#include "lib/comm/embedded.h"
#include "lib/engine/validation.h"
#include "tests/validate/compared.h"
#include "tests/validate/mutations/mutations.h"

namespace shardtool::test {
namespace {

api::ValidateReport validated(const std::string& model, const ShardSet& shards) {
  api::ValidateOptions options;
  options.sources = {shards.folder()};
  options.reference = model_folder(model);
  options.quick = true;
  return api::validate(options);
}

TEST_CASE("what split wrote is the reference, byte for byte, on every device") {
  const std::pair<const char*, const char*> kCases[] = {
      {"prototype", "tp=4"},  {"prototype", "pp=3,tp=2"}, {"prototype", "ep=2,dp=2"},
      {"nine heads", "tp=4"}, {"97 words", "tp=4"},       {"fp8", "tp=2"},
      {"gpt2", "tp=2"},       {"gpt_oss", "ep=2"},        {"phi3", "tp=2"},
      {"kimi_linear", "tp=2"}};
  for (const auto& [model, mesh] : kCases) {
    CAPTURE(model);
    CAPTURE(mesh);
    const TempFolder folder;
    const auto report = validated(model, ShardSet(split_copy(model, mesh, folder)));
    CHECK(report.passes());
    REQUIRE(report.bytes.has_value());
    CHECK(report.bytes->differing == 0);
    if (report.untested.empty()) CHECK(report.bytes->parts == report.parts);
  }
}

TEST_CASE("one other byte of any tensor on any device is told with its tensor and its rank") {
  const TempFolder folder;
  const ShardSet shards(split_copy("prototype", "ep=2,tp=2", folder));
  for (const std::string& name : shards.tensors()) {
    const i64 rank = shards.ranks_of(name).back();
    CAPTURE(name);
    const ShardRows before = shards.read(name, rank);
    ShardRows changed = before;
    changed.add_to_bits(before.rows / 2, before.columns / 2, 1);
    shards.write(name, rank, changed);
    const auto report = validated("prototype", shards);
    shards.write(name, rank, before);
    REQUIRE(report.bytes.has_value());
    REQUIRE(report.bytes->differing == 1);
    CHECK(report.bytes->different.front().tensor == name);
    CHECK(report.bytes->different.front().rank == rank);
  }
}

TEST_CASE("any number of processes compares the same bytes") {
  const TempFolder folder;
  const ShardSet shards(split_copy("prototype", "tp=4", folder));
  shards.change("model.norm.weight", 3, [](ShardRows rows) {
    rows.add_to_bits(0, 0, 1);
    return rows;
  });
  const Compared model(model_folder("prototype"), shards.folder());
  for (const int processes : {1, 2, 3}) {
    CAPTURE(processes);
    std::mutex mutex;
    comm::run_embedded(processes, [&](comm::Communicator& comm) {
      engine::ValidationOptions options;
      options.resources.threads = 1;
      options.with_f64 = false;
      options.compares_bytes = true;
      const auto verdict = engine::validate(model.whole(), model.shards(), &comm, options);
      const std::lock_guard lock(mutex);
      CHECK(verdict.bytes.parts == 4 * std::ssize(shards.tensors()));
      CHECK(verdict.bytes.differing == 1);
      CHECK(verdict.bytes.different.size() == 1);
    });
  }
}

}  // namespace
}  // namespace shardtool::test
