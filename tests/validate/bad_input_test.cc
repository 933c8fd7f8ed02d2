// Inputs that are not a model and its shards: validate reports findings or an error that names
// them, and never passes.
#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "lib/api/validate.h"
#include "tests/support/throws.h"
#include "tests/validate/mutations/mutations.h"

namespace shardtool::test {
namespace {

namespace fs = std::filesystem;

struct Shards {
  TempFolder folder;
  std::string path;
  explicit Shards(const std::string& model, const std::string& mesh)
      : path(split_copy(model, mesh, folder)) {}

  api::ValidateReport against(const std::string& model) const {
    api::ValidateOptions options;
    options.sources = {path};
    options.reference = model_folder(model);
    options.resources.threads = 1;
    return api::validate(options);
  }
};

bool has_note(const api::ValidateReport& report, const std::string& words) {
  for (const std::string& note : report.notes) {
    if (note.find(words) != std::string::npos) return true;
  }
  return false;
}

TEST_CASE("shards of a checkpoint with the same shapes fail in every layer") {
  const auto report = Shards("other prototype", "tp=4").against("prototype");
  CHECK(report.outcome == engine::Outcome::kFail);
  CHECK(report.tiers.at(0).outcome == engine::Outcome::kPass);
  CHECK(report.tiers.at(1).outcome == engine::Outcome::kFail);
  std::vector<std::string> layers;
  for (const auto& fault : report.faults) {
    if (fault.tier == engine::TierKind::kField) layers.push_back(fault.layer);
  }
  CHECK(layers == std::vector<std::string>{"start", "dense 0", "sparse 1", "dense 2", "end"});
  CHECK(report.faults.front().diagnosis.find("elements differ") != std::string::npos);
}

TEST_CASE("shards of a model with other shapes fail by their headers, and nothing is computed") {
  const auto report = Shards("97 words", "tp=4").against("prototype");
  CHECK(report.outcome == engine::Outcome::kFail);
  CHECK(report.tiers.at(0).outcome == engine::Outcome::kFail);
  CHECK(report.tiers.at(0).mismatches == 2);  // embedding and head
  CHECK(report.tiers.at(1).outcome == engine::Outcome::kNotRun);
  CHECK(report.tiers.at(2).outcome == engine::Outcome::kNotRun);
  CHECK(has_note(report, "the model could not be run: "));
}

TEST_CASE("shards of another family name the tensors that each side lacks") {
  const auto report = Shards("gpt2", "tp=2").against("llama");
  CHECK(report.outcome == engine::Outcome::kFail);
  CHECK(report.tiers.at(1).outcome == engine::Outcome::kNotRun);
  CHECK(report.findings.front().message.find("the reference lacks") != std::string::npos);
}

TEST_CASE("a missing rank is a finding that names its file") {
  const Shards shards("prototype", "tp=4");
  fs::remove(ShardSet(shards.path).file(2));
  const auto report = shards.against("prototype");
  CHECK(report.outcome == engine::Outcome::kFail);
  CHECK(report.tiers.at(0).outcome == engine::Outcome::kFail);
  CHECK(report.tiers.at(1).outcome == engine::Outcome::kNotRun);
  CHECK(report.findings.front().file.find("model-rank-2-part-0") != std::string::npos);
}

TEST_CASE("an error that one of two processes explains by findings reaches the one that waits") {
  const Shards shards("mislabelled prototype", "tp=4");
  api::ValidateOptions options;
  options.sources = {shards.path};
  options.reference = model_folder("prototype");
  options.quick = true;
  options.resources.threads = 1;
  options.engine.meeting.folder = shards.folder.path();
  std::array<api::ValidateReport, 2> reports;
  std::array<std::optional<Error>, 2> errors;
  {
    std::vector<std::jthread> processes;
    for (size_t rank = 0; rank < reports.size(); ++rank) {
      processes.emplace_back([&, own = options, rank]() mutable {
        own.engine.launch = comm::Launch{"mpirun", static_cast<int>(rank), 2, "job"};
        if (rank == 1) {
          own.resources.on_progress = [](const exec::Progress& progress) {
            // The first steps exchange values: the other process is in the run, too.
            if (!progress.item.starts_with("step 3 ")) return;
            throw Error(ErrorCode::kUnreadable, "a file that cannot be read");
          };
        }
        errors[rank] = testing::error_of([&] { return reports[rank] = api::validate(own); });
      });
    }
  }
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    CHECK_MESSAGE(!errors[rank], errors[rank]->message());
    CHECK(reports[rank].outcome == engine::Outcome::kFail);
    CHECK(!reports[rank].findings.empty());
    CHECK(has_note(reports[rank], "the model could not be run: a file that cannot be read"));
  }
}

TEST_CASE("a mapping for another world size is an error that names the tensor") {
  const Shards shards("prototype", "tp=4");
  api::ValidateOptions options;
  options.sources = {shards.path};
  options.reference = model_folder("prototype");
  options.mapping.path = shards.folder.write("two.json", R"({"version": 1,
    "extends": ["preset:qwen3_moe"], "mesh": [{"axis": "tp", "size": 2}]})");
  const auto error = testing::error_of([&] { return api::validate(options); });
  REQUIRE(error.has_value());
  CHECK(error->message() == "the mapping gives rank 0 another shard than the files have");
  CHECK(!error->tensor_name().empty());
  CHECK(error->exit_status() == 3);
}

TEST_CASE("parts of splits to other world sizes do not belong together") {
  const Shards four("prototype", "tp=4");
  const Shards two("prototype", "tp=2");
  api::ValidateOptions options;
  options.sources = {four.path, two.path};
  options.reference = model_folder("prototype");
  const auto error = testing::error_of([&] { return api::validate(options); });
  REQUIRE(error.has_value());
  CHECK(error->message().find("the mesh is tp=2, but ") == 0);
  CHECK(error->exit_status() == 4);
}

TEST_CASE("a family without a graph is an error that says what proves its shards") {
  const Shards shards("prototype", "tp=4");
  ShardSet(shards.path).edit_config([](nlohmann::json& config) {
    config["model_type"] = "nothing_known";
    config["architectures"] = {"NothingKnown"};
  });
  const auto error = testing::error_of([&] { return shards.against("prototype"); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kUnsupported);
  CHECK(error->exit_status() == 4);
}

TEST_CASE("a share of gates that nothing has is an error of the config that names its layer") {
  const Shards shards("gemma3n_text", "tp=2");
  ShardSet(shards.path).edit_config([](nlohmann::json& config) {
    config["activation_sparsity_pattern"][2] = 1.5;
  });
  const auto error = testing::error_of([&] { return shards.against("gemma3n_text"); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kConfig);
  CHECK(error->message().find("for layer 2") != std::string::npos);
}

TEST_CASE("a rotation of more features than a head has is an error of the config") {
  const Shards shards("gpt_neox", "tp=2");
  ShardSet(shards.path).edit_config([](nlohmann::json& config) {
    config["rope_parameters"]["partial_rotary_factor"] = 2.0;
  });
  const auto error = testing::error_of([&] { return shards.against("gpt_neox"); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kConfig);
}

TEST_CASE("a whole checkpoint in the place of shards is an error of usage") {
  api::ValidateOptions options;
  options.sources = {model_folder("prototype")};
  CHECK_ERROR(kUsage, api::validate(options));
}

TEST_CASE("a folder that is not there is an error, not a verdict") {
  api::ValidateOptions options;
  options.sources = {"/nowhere/at/all"};
  const auto error = testing::error_of([&] { return api::validate(options); });
  REQUIRE(error.has_value());
  CHECK(error->exit_status() == 4);
}

TEST_CASE("NaN in a norm of both sides is no pass, not even of the field alone") {
  for (const bool quick : {false, true}) {
    const Shards shards("prototype with a NaN norm", "tp=4");
    api::ValidateOptions options;
    options.sources = {shards.path};
    options.reference = model_folder("prototype with a NaN norm");
    options.quick = quick;
    const auto report = api::validate(options);
    CHECK(report.outcome == engine::Outcome::kUndecided);
    REQUIRE(!report.odd_weights.empty());
    CHECK(report.odd_weights.front().tensor == "model.layers.2.input_layernorm.weight");
  }
}

TEST_CASE(
    "without a reference, what is wrong in one replica is seen and the report says its limit") {
  const Shards shards("prototype", "tp=4");
  ShardSet(shards.path).change("model.norm.weight", 2, [](ShardRows rows) {
    rows.add_to_bits(5, 0, 1);
    return rows;
  });
  api::ValidateOptions options;
  options.sources = {shards.path};
  const auto report = api::validate(options);
  CHECK(report.outcome == engine::Outcome::kFail);
  CHECK(report.faults.front().diagnosis.find("norm.weight: rank 2 element [5] is") !=
        std::string::npos);
  REQUIRE(report.not_proved.size() == 1);
  CHECK(report.not_proved.front().find("against themselves merged") != std::string::npos);
}

}  // namespace
}  // namespace shardtool::test
