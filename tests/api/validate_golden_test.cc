#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "lib/api/transform.h"
#include "lib/api/validate.h"
#include "tests/golden/models.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace shardtool;

namespace {

namespace fs = std::filesystem;

/// Splits into a new folder; returns false if the heads cannot be cut this way.
bool split_over(const std::string& model, const std::string& mesh, const std::string& output) {
  api::SplitOptions options;
  options.source = model;
  options.mapping.mesh = mesh::parse_mesh(mesh);
  options.write.output = output;
  try {
    api::split(options);
  } catch (const Error& error) {
    const bool has_few_heads =
        error.code() == ErrorCode::kGroups || error.code() == ErrorCode::kEmptyShard;
    if (has_few_heads) return false;
    throw;
  }
  return true;
}

/// True if the model has tensors that its graph does not read: an image tower, or powers of
/// tensors that it reads.
bool has_unread_tensors(const std::string& model) {
  static const std::set<std::string> kUnread{"gemma4", "kimi_k25", "llava", "llava_next",
                                             "minimax"};
  return kUnread.contains(
      nlohmann::json::parse(std::ifstream(model + "/config.json")).at("model_type"));
}

const api::ValidateTier& tier(const api::ValidateReport& report, const std::string& name) {
  const auto found = std::find_if(report.tiers.begin(), report.tiers.end(),
                                  [&](const auto& one) { return to_text(one.kind) == name; });
  REQUIRE(found != report.tiers.end());
  return *found;
}

/// Validates two devices' shards of a model, and its graph with a golden file.
api::ValidateReport against_golden(const std::string& model, const std::string& golden) {
  const test::TempFolder scratch;
  REQUIRE(split_over(model, "tp=2", scratch / "tp2"));
  api::ValidateOptions options;
  options.sources = {scratch / "tp2"};
  options.reference = model;
  options.golden = golden;
  return api::validate(options);
}

/// A quick run of shards against their model, with a golden file.
api::ValidateOptions quick_options(const std::string& shards, const std::string& model,
                                   const std::string& golden) {
  api::ValidateOptions options;
  options.sources = {shards};
  options.reference = model;
  options.quick = true;
  options.golden = golden;
  return options;
}

}  // namespace

TEST_CASE("every family: our f32 is what the library computes, and shards compute the same") {
  for (const std::string& name : golden::model_names()) {
    CAPTURE(name);
    const std::string model = golden::model_folder(name);
    const auto report = against_golden(model, golden::expected_file(name));
    CHECK(report.outcome == engine::Outcome::kPass);
    CHECK((report.coverage == 100) == !has_unread_tensors(model));
    CHECK(tier(report, "golden").worst < 1e-4);
    CHECK(tier(report, "f64").worst < 1e-12);
    CHECK(tier(report, "field").mismatches == 0);
  }
}

TEST_CASE("greedy routing takes no notice of groups that a config has, as in the library") {
  const std::string model = golden::model_folder("deepseek_v2_lite");
  const test::TempFolder scratch;
  const std::string grouped = scratch / "grouped";
  fs::copy(model, grouped);
  auto config = nlohmann::json::parse(std::ifstream(model + "/config.json"));
  REQUIRE(config["topk_method"] == "greedy");
  config["n_group"] = 4;
  config["topk_group"] = 1;
  std::ofstream(grouped + "/config.json") << config;
  const auto report = against_golden(grouped, golden::expected_file("deepseek_v2_lite"));
  CHECK(report.outcome == engine::Outcome::kPass);
  CHECK(tier(report, "golden").worst < 1e-4);
}

TEST_CASE("every family on other meshes: replicas, stages, experts, replicated and uneven heads") {
  i64 runs = 0;
  for (const std::string& name : golden::model_names()) {
    const std::string model = golden::model_folder(name);
    for (const std::string mesh : {"tp=4", "dp=2,tp=2", "pp=2,tp=2", "ep=2,tp=2", "tp=3"}) {
      CAPTURE(name);
      CAPTURE(mesh);
      const test::TempFolder scratch;
      const std::string shards = scratch.path() + "/shards";
      if (!split_over(model, mesh, shards)) continue;
      api::ValidateOptions options;
      options.sources = {shards};
      options.reference = model;
      options.quick = true;
      const auto report = api::validate(options);
      CHECK(report.outcome == engine::Outcome::kPass);
      CHECK(report.reordered == 0);
      ++runs;
    }
  }
  CHECK(runs > 70);
}

TEST_CASE("a golden file of words alone holds a model that could read images, too") {
  const auto report =
      against_golden(golden::model_folder("gemma3"), golden::expected_file("gemma3.words"));
  CHECK(report.outcome == engine::Outcome::kPass);
  CHECK(report.coverage == 100);
  CHECK(tier(report, "golden").worst < 1e-4);
}

TEST_CASE("a golden file of another model says so") {
  const test::TempFolder scratch;
  const std::string model = golden::model_folder("llama");
  REQUIRE(split_over(model, "tp=2", scratch.path() + "/tp2"));
  api::ValidateOptions options;
  options.sources = {scratch.path() + "/tp2"};
  options.reference = model;
  options.quick = true;
  options.golden = golden::expected_file("llama_llama3");
  const auto report = api::validate(options);
  CHECK(report.outcome == engine::Outcome::kFail);
  CHECK(tier(report, "golden").outcome == engine::Outcome::kFail);
  CHECK(tier(report, "field").outcome == engine::Outcome::kPass);
  options.golden = model + "/config.json";
  CHECK_THROWS_AS(api::validate(options), Error);
}

TEST_CASE("a golden file gives what enters beside tokens, and of another size says so") {
  const test::TempFolder scratch;
  const std::string model = golden::model_folder("whisper");
  REQUIRE(split_over(model, "tp=2", scratch / "tp2"));
  const fs::path expected = golden::expected_file("whisper");
  test::Tensors values = test::read_tensors(expected.parent_path(), "whisper");
  test::Tensor& given = values.at("given");
  given.spec.shape.back() /= 2;
  given.bytes.resize(given.bytes.size() / 2);
  test::write_checkpoint(scratch / "half", values);
  const auto options =
      quick_options(scratch / "tp2", model, scratch / "half" + "/model.safetensors");
  const auto error = testing::error_of([&] { api::validate(options); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kShapeMismatch);
  CHECK(error->message() == "the input beside the tokens has another size");
}

TEST_CASE("golden values that prove nothing are refused") {
  const test::TempFolder scratch;
  const std::string model = golden::model_folder("llama");
  REQUIRE(split_over(model, "tp=2", scratch / "tp2"));
  const fs::path expected = golden::expected_file("llama");
  const test::Tensors values = test::read_tensors(expected.parent_path(), "llama.");
  const auto refused = [&](const auto& change) {
    test::Tensors changed = values;
    change(changed);
    test::write_checkpoint(scratch / "changed", changed);
    const auto options =
        quick_options(scratch / "tp2", model, scratch / "changed" + "/model.safetensors");
    return testing::error_of([&] { api::validate(options); });
  };
  const auto put = [](test::Tensor& tensor, const auto& number) {
    std::memcpy(tensor.bytes.data(), &number, sizeof number);
  };
  CHECK_FALSE(refused([](auto&) {}));
  for (const float odd :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const std::string name : {"logits", "hidden.1"}) {
      CAPTURE(name);
      const auto error = refused([&](auto& changed) { put(changed.at(name), odd); });
      REQUIRE(error);
      CHECK(error->code() == ErrorCode::kShapeMismatch);
      CHECK(error->tensor_name() == name);
    }
  }
  for (const i64 token : {i64{-1}, i64{1} << 40}) {
    const auto error = refused([&](auto& changed) { put(changed.at("input_ids"), token); });
    REQUIRE(error);
    CHECK(error->message() == "a golden token is not in the model's vocabulary");
  }
  CHECK(refused([](auto& changed) {
    for (auto& [name, tensor] : changed) {
      tensor.spec.shape[1] = 0;
      tensor.bytes.clear();
    }
  }));
  CHECK(refused([](auto& changed) {
    test::Tensor later = changed.at("hidden.0");
    later.spec.name = "hidden.7";
    changed.emplace("hidden.7", later);
  }));
}
