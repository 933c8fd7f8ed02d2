#include "lib/ops/rope/rope_frequencies.h"

#include <doctest/doctest.h>

#include <cmath>
#include <optional>

#include "lib/base/error.h"
#include "lib/model/graph/graph.h"
#include "tests/golden/tables.h"
#include "tests/support/throws.h"

using namespace shardtool;
using ops::rope_frequencies;
using testing::error_of;

namespace {

mapping::ModelConfig config_of(const std::string& text) {
  return mapping::parse_config(text, "config.json");
}

/// A config whose rope_parameters are `text`.
mapping::ModelConfig asking(const std::string& text) {
  return config_of(R"({"max_position_embeddings": 64, "rope_parameters": )" + text + "}");
}

std::optional<Error> refusal(const std::string& parameters) {
  const auto config = asking(parameters);
  return error_of(
      [&] { static_cast<void>(rope_frequencies(config, ops::Rope().scaling, 8, 1e4, 24)); });
}

}  // namespace

TEST_CASE("frequencies of every kind are what the library computes in f32") {
  const auto& tables = golden::function_tables().rotations;
  CHECK(tables.size() == 28);
  for (const auto& table : tables) {
    CAPTURE(table.name);
    const auto config = config_of(table.config);
    const auto found =
        rope_frequencies(config, ops::Rope().scaling, table.dims, table.theta, table.length);
    CHECK(golden::relative_distance(found.inverse, table.inverse) < 1e-6);
    CHECK(found.attention_factor == doctest::Approx(table.attention_factor).epsilon(1e-12));
    CHECK(ops::yarn_score_factor(config) == doctest::Approx(table.score_factor).epsilon(1e-12));
  }
}

TEST_CASE("a config without a rotation, or with an empty one, means plain powers of theta") {
  for (const char* text : {"{}", R"({"rope_scaling": null})", R"({"rope_parameters": {}})",
                           R"({"rope_parameters": {"rope_type": "default"}})"}) {
    CAPTURE(text);
    const auto found = rope_frequencies(config_of(text), ops::Rope().scaling, 4, 100, 24);
    CHECK(found.inverse == std::vector<double>{1, 0.1});
    CHECK(found.attention_factor == 1);
    CHECK(ops::yarn_score_factor(config_of(text)) == 1);
  }
}

TEST_CASE("rope_parameters count before rope_scaling") {
  const auto both = config_of(R"({"rope_parameters": {"rope_type": "linear", "factor": 2},
                                  "rope_scaling": {"type": "linear", "factor": 4}})");
  CHECK(rope_frequencies(both, ops::Rope().scaling, 4, 100, 24).inverse ==
        std::vector<double>{0.5, 0.05});
}

TEST_CASE("yarn's factor may be another than its own where the config gives none") {
  const auto factor = [](const char* more, std::optional<double> otherwise) {
    const auto config = config_of(
        R"({"rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 16)" +
        std::string(more) + "}}");
    const std::vector<std::string> paths{"rope_scaling"};
    return rope_frequencies(config, paths, 8, 100, 24, otherwise).attention_factor;
  };
  CHECK(factor("", {}) == doctest::Approx(0.1 * std::log(4.0) + 1));
  CHECK(factor("", 1) == 1);
  CHECK(factor(R"(, "attention_factor": 3)", 1) == 3);
}

TEST_CASE("a type that is not known is named, not ignored") {
  for (const char* type : {"axial", "proportionate", "Yarn", ""}) {
    const auto error = refusal(R"({"rope_type": ")" + std::string(type) + "\"}");
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kUnsupported);
    REQUIRE_FALSE(error->notes().empty());
    CHECK(error->notes()[0].second ==
          "rope_parameters of type '" + std::string(type) + "' in config.json");
  }
  const auto nested = refusal(R"({"full_attention": {"rope_type": "default"}})");
  REQUIRE(nested);
  CHECK(nested->code() == ErrorCode::kUnsupported);
}

TEST_CASE("a value that is absent or of another kind is an error of the config") {
  for (const char* text :
       {R"({"rope_type": "linear"})", R"({"rope_type": "linear", "factor": "2"})",
        R"({"rope_type": 3})", R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 1})",
        R"({"rope_type": "yarn", "factor": 2, "truncate": 1})",
        R"({"rope_type": "longrope", "short_factor": [1, 2, 3]})",
        R"({"rope_type": "longrope", "short_factor": [1, 2, 3, "4"], "long_factor": [1, 2, 3, 4]})",
        R"([1])", R"("yarn")"}) {
    CAPTURE(text);
    const auto error = refusal(text);
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kConfig);
  }
}
