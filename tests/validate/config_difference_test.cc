#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/api/transform.h"
#include "lib/api/validate.h"
#include "tests/golden/models.h"
#include "tests/support/temp_folder.h"

/// A config.json that makes another model of the same weights.
using namespace shardtool;

namespace {

using nlohmann::json;

/// Shards of a model on two devices, and its reference, each with a config.json of its own.
class TwoConfigs {
 public:
  explicit TwoConfigs(const std::string& name) {
    std::filesystem::copy(golden::model_folder(name), reference());
    api::SplitOptions options;
    options.source = reference();
    options.mapping.mesh = mesh::Mesh({{"tp", 2}});
    options.write.output = shards();
    api::split(options);
  }

  std::string reference() const { return folder_ / "reference"; }
  std::string shards() const { return folder_ / "shards"; }

  json config() const { return json::parse(std::ifstream(reference() + "/config.json")); }
  static void write(const std::string& folder, const json& config) {
    std::ofstream(folder + "/config.json") << config;
  }

  api::ValidateReport validate(const std::string& config = "") const {
    api::ValidateOptions options;
    options.sources = {shards()};
    options.reference = reference();
    options.mapping.config = config;
    options.quick = true;
    return api::validate(options);
  }

 private:
  test::TempFolder folder_;
};

}  // namespace

TEST_CASE("shards whose config.json makes another model of them are wrong, and the values named") {
  const TwoConfigs llama("llama");
  const json whole = llama.config();
  const std::pair<std::string, json> changes[] = {
      {"rms_norm_eps", 0.1},
      // The field has random rotations, but the model's depend on these.
      {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 500000.0}}},
      {"rope_parameters", {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 10000.0}}},
      {"hidden_act", "gelu"},
      {"num_hidden_layers", whole["num_hidden_layers"].get<int>() - 1},
      {"tie_word_embeddings", !whole["tie_word_embeddings"].get<bool>()}};
  for (const auto& [key, value] : changes) {
    CAPTURE(key);
    json changed = whole;
    REQUIRE(changed.contains(key));
    changed[key] = value;
    for (const std::string& folder : {llama.shards(), llama.reference()}) {
      TwoConfigs::write(llama.shards(), whole);
      TwoConfigs::write(llama.reference(), whole);
      CHECK(llama.validate().outcome == engine::Outcome::kPass);
      TwoConfigs::write(folder, changed);
      const auto report = llama.validate();
      CHECK(report.outcome == engine::Outcome::kFail);
      REQUIRE(report.findings.size() == 1);
      CHECK(report.findings[0].message.find(key) != std::string::npos);
      // One that is named is for both.
      CHECK(llama.validate(folder + "/config.json").outcome == engine::Outcome::kPass);
    }
  }
}

TEST_CASE("a config.json may say otherwise what no result depends on") {
  const TwoConfigs llama("llama");
  json config = llama.config();
  config["torch_dtype"] = "float64";
  config["transformers_version"] = "0.0.1";
  config["architectures"] = {"Another"};
  config["sliding_window"] = nullptr;
  config["attention_bias"] = false;
  TwoConfigs::write(llama.shards(), config);
  CHECK(llama.validate().outcome == engine::Outcome::kPass);
}
