// Without a reference the shards are compared with the hashes of their manifest: bytes that `split`
// did not write never pass.
#include "lib/api/transfer/sources/recorded_bytes.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>

#include "lib/api/transfer/sources/open_source.h"
#include "lib/api/transform.h"
#include "lib/comm/embedded.h"
#include "lib/engine/validation.h"
#include "tests/golden/models.h"
#include "tests/validate/compared.h"
#include "tests/validate/mutations/mutations.h"

namespace shardtool::test {
namespace {

api::ValidateReport validated(const std::string& parts, const std::string& reference = "") {
  api::ValidateOptions options;
  options.sources = {parts};
  options.reference = reference;
  options.quick = true;
  options.resources.threads = 1;
  return api::validate(options);
}

/// Returns rule, tensor and rank of every finding, such as "ST0706 tensor 1".
std::vector<std::string> found_in(const api::ValidateReport& report) {
  std::vector<std::string> found;
  for (const check::Finding& one : report.findings) {
    found.push_back(fmt::format("{} {} {}", check::rule_info(one.rule).id, one.tensor, one.rank));
  }
  return found;
}

const std::string kGate = "model.layers.0.mlp.gate_proj.weight";
const std::string kMlpUp = "model.layers.0.mlp.up_proj.weight";

void flip(const ShardSet& shards, const std::string& tensor, i64 rank) {
  shards.change(tensor, rank, [](ShardRows rows) {
    rows.add_to_bits(rows.rows / 2, rows.columns / 2, 1);
    return rows;
  });
}

/// Exchanges the data of two ranks' files; headers stay.
void exchange_ranks(const ShardSet& shards) {
  for (const std::string& tensor : shards.tensors()) {
    const auto ranks = shards.ranks_of(tensor);
    if (ranks.size() > 1) shards.exchange(tensor, 0, 1);
  }
}

/// Exchanges two tensors of one shape on every rank, so that the merged model has them exchanged,
/// too.
void exchange_tensors(const ShardSet& shards) {
  for (const i64 rank : shards.ranks_of(kGate)) shards.exchange(kGate, kMlpUp, rank);
}

/// Exchanges them in the manifest's hashes, too, as if the wrong files had been hashed again.
void exchange_with_hashes(const ShardSet& shards) {
  shards.exchange(kGate, 0, 1);
  shards.edit_manifest([](nlohmann::json& manifest) {
    auto& shard = manifest.at("tensors").at(kGate).at("shards");
    std::swap(shard.at(0).at("xxh3"), shard.at(1).at("xxh3"));
  });
}

struct Row {
  const char* what;
  void (*apply)(const ShardSet&);
  std::vector<std::string> found;  ///< expected among the findings
};

TEST_CASE("wrong bytes that a merge has alike fail without a reference and are named") {
  const std::vector<Row> rows{
      {"files of two ranks exchanged",
       exchange_ranks,
       {"ST0706 " + kGate + " 0", "ST0706 " + kGate + " 1", "ST0706 lm_head.weight 1"}},
      {"one tensor exchanged between ranks",
       [](const ShardSet& shards) { shards.exchange(kGate, 0, 1); },
       {"ST0706 " + kGate + " 0", "ST0706 " + kGate + " 1"}},
      {"two tensors exchanged on all ranks",
       exchange_tensors,
       {"ST0706 " + kGate + " 0", "ST0706 " + kMlpUp + " 1"}},
      {"one bit of one part",
       [](const ShardSet& shards) { flip(shards, kMlpUp, 1); },
       {"ST0706 " + kMlpUp + " 1"}},
      {"one tensor exchanged together with its hashes",
       exchange_with_hashes,
       {"ST0705 " + kGate + " -1"}},
      {"one tensor of zeros",
       [](const ShardSet& shards) { shards.change_all(kGate, zeros); },
       {"ST0706 " + kGate + " 0", "ST0706 " + kGate + " 1"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const TempFolder folder;
    const ShardSet shards(split_copy("prototype", "tp=2", folder));
    row.apply(shards);
    const auto report = validated(shards.folder());
    CHECK(report.outcome == engine::Outcome::kFail);
    CHECK(report.tiers.at(1).kind == engine::TierKind::kHashes);
    CHECK(report.tiers.at(1).outcome == engine::Outcome::kFail);
    const auto found = found_in(report);
    CAPTURE(fmt::format("{}", fmt::join(found, ", ")));
    for (const std::string& one : row.found) CHECK(std::ranges::count(found, one) == 1);
    REQUIRE(report.bytes.has_value());
    CHECK(report.bytes->differing == std::ssize(found));
  }
}

TEST_CASE(
    "one other byte of any tensor on any rank fails without a reference, and only it is told") {
  const TempFolder folder;
  const ShardSet shards(split_copy("prototype", "ep=2,tp=2", folder));
  for (const std::string& name : shards.tensors()) {
    const i64 rank = shards.ranks_of(name).back();
    CAPTURE(name);
    const ShardRows before = shards.read(name, rank);
    flip(shards, name, rank);
    const auto report = validated(shards.folder());
    shards.write(name, rank, before);
    CHECK(report.outcome == engine::Outcome::kFail);
    CHECK(found_in(report) == std::vector{fmt::format("ST0706 {} {}", name, rank)});
  }
}

TEST_CASE("one other byte of any part of a packed weight fails without a reference") {
  for (const std::string format : {"gptq_act_order", "awq", "nvfp4"}) {
    CAPTURE(format);
    const TempFolder folder;
    api::SplitOptions split;
    split.source = golden::packed_model(format);
    split.mapping.mesh = mesh::parse_mesh("tp=2");
    split.write.output = folder / "parts";
    api::split(split);
    const ShardSet shards(split.write.output);
    CHECK(validated(shards.folder()).passes());
    for (const std::string& name : shards.tensors()) {
      if (name.find("layers.0.mlp.down_proj") == std::string::npos) continue;
      if (name.ends_with("g_idx")) continue;  // a group that no device has is an error
      const i64 rank = shards.ranks_of(name).back();
      CAPTURE(name);
      const ShardRows before = shards.read(name, rank);
      ShardRows changed = before;
      changed.bytes.back() ^= 1;
      shards.write(name, rank, changed);
      const auto report = validated(shards.folder());
      shards.write(name, rank, before);
      CHECK(report.outcome == engine::Outcome::kFail);
      CHECK(std::ranges::count(found_in(report), fmt::format("ST0706 {} {}", name, rank)) == 1);
    }
  }
}

TEST_CASE("another value of a constant that an engine's layout added fails and is named") {
  const TempFolder folder;
  api::SplitOptions split;
  split.source = model_folder("prototype");
  split.mapping.mesh = mesh::parse_mesh("tp=2");
  split.write.layout = "vllm";
  split.write.output = folder / "parts";
  api::split(split);
  CHECK(validated(split.write.output, split.source).passes());
  const auto opened = api::open_logical({split.write.output});
  REQUIRE(!opened.constants.empty());
  const api::LogicalConstant& constant = opened.constants.back();
  const std::string& file = opened.files.at(static_cast<size_t>(constant.slot.file)).path;
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekp(constant.slot.offset).put(1);
  stream.close();
  for (const std::string& reference : {std::string(), split.source}) {
    CAPTURE(reference);
    const auto report = validated(split.write.output, reference);
    CHECK(report.outcome == engine::Outcome::kFail);
    REQUIRE(report.findings.size() == 1);
    CHECK(report.findings.front().rule == check::CheckRule::kShardHash);
    CHECK(report.findings.front().tensor == constant.record->name);
    CHECK(report.findings.front().file == file);
  }
}

TEST_CASE("shards of every model pass without a reference, which says what it did not prove") {
  for (const std::string& model : every_model()) {
    CAPTURE(model);
    const TempFolder folder;
    const auto report = validated(split_copy(model, "tp=2", folder));
    CHECK(report.passes());
    REQUIRE(report.bytes.has_value());
    CHECK(report.bytes->parts == report.parts);
    CHECK(report.bytes->differing == 0);
    REQUIRE(report.not_proved.size() == 1);
    CHECK(report.not_proved.front().find("original") != std::string::npos);
  }
}

TEST_CASE("with a reference nothing is left unproved that the report would name") {
  const TempFolder folder;
  const auto report = validated(split_copy("prototype", "tp=2", folder), model_folder("prototype"));
  CHECK(report.passes());
  CHECK(report.not_proved.empty());
}

TEST_CASE("holding bytes against the manifest reads nothing twice") {
  const std::pair<const char*, const char*> kCases[] = {
      {"prototype", "tp=4"}, {"prototype", "pp=3,tp=2"}, {"prototype", "ep=2,tp=2"},
      {"fp8", "tp=2"},       {"gpt2", "tp=2"},           {"kimi_linear", "tp=2"}};
  for (const auto& [model, mesh] : kCases) {
    CAPTURE(model);
    CAPTURE(mesh);
    const TempFolder folder;
    const std::string parts = split_copy(model, mesh, folder);
    CHECK(validated(parts).bytes_read == validated(parts, model_folder(model)).bytes_read);
  }
}

TEST_CASE("any number of processes holds the same bytes against the manifest") {
  const TempFolder folder;
  const ShardSet shards(split_copy("prototype", "tp=4", folder));
  flip(shards, kGate, 1);
  flip(shards, kMlpUp, 3);
  const auto opened = api::open_logical({shards.folder()});
  const auto recorded = api::recorded_hashes(opened, std::vector<bool>(opened.tensors.size()));
  const Compared model(shards.folder(), shards.folder());
  for (const int processes : {1, 2, 3}) {
    CAPTURE(processes);
    std::mutex mutex;
    comm::run_embedded(processes, [&](comm::Communicator& comm) {
      engine::ValidationOptions options;
      options.resources.threads = 1;
      options.with_f64 = false;
      options.recorded = &recorded;
      auto held = engine::validate(model.whole(), model.shards(), &comm, options).recorded;
      api::hold_unread(opened, {}, comm, held);
      const std::lock_guard lock(mutex);
      REQUIRE(held.different.size() == 2);
      CHECK(held.different.front().tensor == kGate);
      CHECK(held.different.front().rank == 1);
      CHECK(held.different.back().tensor == kMlpUp);
      CHECK(held.different.back().rank == 3);
      CHECK(held.different.front().found != held.different.front().expected);
    });
  }
}

}  // namespace
}  // namespace shardtool::test
